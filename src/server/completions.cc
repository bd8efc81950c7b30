#include "server/completions.h"

#include <ctime>
#include <utility>

#include "server/api_error.h"
#include "server/fields.h"
#include "server/generation_call.h"
#include "server/logprob_json.h"
#include "server/lora_fields.h"
#include "server/prompt_field.h"
#include "server/sampling_fields.h"

namespace edgerunner::server {
namespace {

constexpr std::int64_t kDefaultMaxTokens = 16;  // OpenAI's
constexpr std::size_t kMostPrompts = 128;

struct CompletionRequest {
  std::vector<std::vector<TokenId>> prompts;
  std::size_t n = 1;
  GenerateOptions options;
  std::optional<std::uint32_t> logprobs;
  bool echo = false;
  bool stream = false;
  bool include_usage = false;
};

CompletionRequest read_request(Engine& engine, const Json& body) {
  const Fields fields(body);
  CompletionRequest request;
  fields.text("model");
  request.prompts = read_prompts(fields, "prompt", kMostPrompts, engine);
  request.n = static_cast<std::size_t>(fields.integer("n", 1, kMostChoices).value_or(1));
  if (const auto best = fields.integer("best_of", 1, kMostChoices)) {
    if (static_cast<std::size_t>(*best) != request.n) {
      fields.fail("best_of", "must be the same as n");
    }
  }
  fields.refuse_unless("suffix", "", "is not supported");
  request.options = read_sampling(fields, engine.info());
  request.options.adapters = read_lora(fields, engine);
  request.options.max_tokens = static_cast<std::uint32_t>(
      fields.integer("max_tokens", 1, INT32_MAX).value_or(kDefaultMaxTokens));
  if (const auto count = fields.integer("logprobs", 0, kMostTopLogprobs)) {
    request.logprobs = static_cast<std::uint32_t>(*count);
  }
  request.echo = fields.boolean("echo").value_or(false);
  if (request.echo && request.logprobs) {
    fields.fail("echo", "can't be combined with logprobs: those of the prompt are not kept");
  }
  request.stream = fields.boolean("stream").value_or(false);
  request.include_usage = read_include_usage(fields);
  return request;
}

class CompletionCall : public GenerationCall {
 public:
  CompletionCall(Engine& engine, std::shared_ptr<Exchange> exchange, CompletionRequest request)
      : GenerationCall(engine, std::move(exchange), request.stream),
        request_(std::move(request)),
        id_(new_id("cmpl-")),
        created_(std::time(nullptr)) {}

  void start() {
    std::vector<ChoicePlan> choices;
    for (const auto& prompt : request_.prompts) {
      for (std::size_t i = 0; i < request_.n; ++i) {
        choices.push_back({.prompt = prompt, .options = request_.options});
        choices.back().options.sampling.seed += i;
      }
    }
    texts_.resize(choices.size());
    reports_.resize(choices.size());
    launch(std::move(choices), request_.logprobs);
  }

 private:
  void begin_stream() override {
    if (!request_.echo) return;
    for (std::size_t i = 0; i < texts_.size(); ++i) send_chunk(i, prompt_text(i), {}, nullptr);
  }

  void on_text(std::size_t choice, const std::string& text,
               std::vector<TokenReport> reports) override {
    texts_[choice] += text;
    if (stream_) return send_chunk(choice, text, reports, nullptr);
    keep(choice, std::move(reports));
  }

  void on_end(std::size_t choice, const Summary& summary,
              std::vector<TokenReport> reports) override {
    if (stream_) return send_chunk(choice, "", reports, finish_reason_of(summary));
    keep(choice, std::move(reports));
  }

  void finish() override {
    if (stream_) {
      if (request_.include_usage) {
        Json event = envelope();
        event["choices"] = Json::array();
        add_usage(event);
        send_event(event);
      }
      return end_stream("[DONE]");
    }
    Json answer = envelope();
    Json& list = answer["choices"] = Json::array();
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      list.push_back(choice_json(i, request_.echo ? prompt_text(i) + texts_[i] : texts_[i],
                                 reports_[i], finish_reason_of(summaries_[i])));
    }
    add_usage(answer);
    exchange_->respond({.body = to_text(answer)});
  }

  void keep(std::size_t choice, std::vector<TokenReport> reports) {
    std::move(reports.begin(), reports.end(), std::back_inserter(reports_[choice]));
  }

  Json envelope() const {
    return {{"id", id_},
            {"object", "text_completion"},
            {"created", created_},
            {"model", engine_.options().model_id}};
  }

  void add_usage(Json& answer) const {
    answer["usage"] = usage_of(summaries_, request_.n);
    answer["timings"] = timings_of(summaries_.front());
  }

  Json choice_json(std::size_t choice, std::string text, std::span<const TokenReport> reports,
                   const char* finish_reason) const {
    Json logprobs;
    if (request_.logprobs) {
      logprobs = completion_logprobs(engine_.tokenizer(), reports, texts_[choice]);
    }
    return {{"text", std::move(text)},
            {"index", choice},
            {"logprobs", std::move(logprobs)},
            {"finish_reason", finish_reason == nullptr ? Json() : Json(finish_reason)}};
  }

  void send_chunk(std::size_t choice, std::string text, std::span<const TokenReport> reports,
                  const char* finish_reason) {
    Json event = envelope();
    event["choices"] = Json::array({choice_json(choice, std::move(text), reports, finish_reason)});
    if (request_.include_usage) event["usage"] = nullptr;
    send_event(event);
  }

  std::string prompt_text(std::size_t choice) const {
    return engine_.tokenizer().decode(request_.prompts[choice / request_.n]);
  }

  const CompletionRequest request_;
  const std::string id_;
  const std::time_t created_;
  std::vector<std::string> texts_;                 // generated so far, by choice
  std::vector<std::vector<TokenReport>> reports_;  // by choice; empty while streaming
};

}  // namespace

void handle_completion(Engine& engine, const std::shared_ptr<Exchange>& exchange) {
  engine.model();
  CompletionRequest request = read_request(engine, parse_body(exchange->request().body));
  std::make_shared<CompletionCall>(engine, exchange, std::move(request))->start();
}

}  // namespace edgerunner::server
