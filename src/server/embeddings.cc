#include "server/embeddings.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/embedding_task.h"
#include "server/api_error.h"
#include "server/base64.h"
#include "server/fields.h"
#include "server/prompt_field.h"

namespace edgerunner::server {
namespace {

constexpr std::size_t kMostInputs = 2048;  // OpenAI's

// The inputs of a request, one after another, so that a request takes one place, however many they
// are.
class EmbeddingsCall : public std::enable_shared_from_this<EmbeddingsCall> {
 public:
  EmbeddingsCall(Engine& engine, std::shared_ptr<Exchange> exchange)
      : engine_(engine), exchange_(std::move(exchange)) {
    const Json body = parse_body(exchange_->request().body);
    const Fields fields(body);
    fields.text("model");
    inputs_ = read_prompts(fields, "input", kMostInputs, engine_);
    base64_ = fields.choice("encoding_format", {"float", "base64"}) == "base64";
    const auto pooling = fields.choice("pooling", {"mean", "last"});
    pooling_ = pooling == "last" ? Pooling::last : Pooling::mean;
    const std::uint32_t dim = engine_.embedding_size();
    if (const auto wanted = fields.integer("dimensions", 1, INT32_MAX); wanted && *wanted != dim) {
      fields.fail("dimensions", "must be those of the model, " + std::to_string(dim));
    }
    for (const auto& input : inputs_) tokens_ += input.size();
  }

  void start() {
    place_.emplace(std::move(engine_.take_places(1).front()));
    exchange_->on_drop([self = shared_from_this()] { self->abandon(); });
    next();
  }

 private:
  void next() {
    task_ = std::make_shared<EmbeddingTask>(
        std::move(inputs_[data_.size()]), pooling_,
        [self = shared_from_this()](std::vector<float> embedding) {
          self->exchange_->post(
              [self, embedding = std::move(embedding)] { self->take(embedding); });
        },
        [self = shared_from_this()](const std::exception_ptr& error) {
          self->exchange_->post([self, error] { self->fail(error); });
        },
        engine_.adapters());
    engine_.submit(task_);
  }

  void take(const std::vector<float>& embedding) {
    if (!place_) return;
    Json entry = {{"object", "embedding"}, {"index", data_.size()}};
    if (base64_) {
      entry["embedding"] = to_base64(std::as_bytes(std::span(embedding)));
    } else {
      entry["embedding"] = embedding;
    }
    data_.push_back(std::move(entry));
    if (data_.size() < inputs_.size()) return next();
    abandon();
    exchange_->respond(
        {.body = to_text({{"object", "list"},
                          {"data", std::move(data_)},
                          {"model", engine_.options().model_id},
                          {"usage", {{"prompt_tokens", tokens_}, {"total_tokens", tokens_}}}})});
  }

  void fail(const std::exception_ptr& error) {
    if (!place_) return;
    abandon();
    exchange_->respond(to_response(to_api_error(error)));
  }

  void abandon() {
    if (task_) task_->cancel_requested = true;
    task_.reset();
    place_.reset();
  }

  Engine& engine_;
  const std::shared_ptr<Exchange> exchange_;
  std::vector<std::vector<TokenId>> inputs_;
  std::size_t tokens_ = 0;
  Pooling pooling_ = Pooling::mean;
  bool base64_ = false;
  std::optional<Engine::Place> place_;  // none: over
  std::shared_ptr<EmbeddingTask> task_;
  Json data_ = Json::array();
};

}  // namespace

void handle_embeddings(Engine& engine, const std::shared_ptr<Exchange>& exchange) {
  engine.model();
  std::make_shared<EmbeddingsCall>(engine, exchange)->start();
}

}  // namespace edgerunner::server
