#include "server/responses.h"

#include <ctime>
#include <utility>

#include "server/generation_call.h"
#include "server/response_items.h"
#include "server/response_request.h"

namespace edgerunner::server {
namespace {

class ResponseCall : public GenerationCall {
 public:
  ResponseCall(Engine& engine, std::shared_ptr<Exchange> exchange, ResponseRequest request)
      : GenerationCall(engine, std::move(exchange), request.stream),
        request_(std::move(request)),
        id_(new_id("resp_")),
        created_(std::time(nullptr)),
        parser_(request_.prompt.format),
        items_([this](std::string_view type, const Json& event) { emit(type, event); }) {}

  void start() {
    std::vector<ChoicePlan> plans;
    plans.push_back(
        {.prompt = request_.prompt.ids, .options = request_.options, .grammar = request_.grammar});
    launch(std::move(plans), std::nullopt);
  }

 private:
  void begin_stream() override {
    emit("response.created", {{"response", response("in_progress")}});
    emit("response.in_progress", {{"response", response("in_progress")}});
  }

  void on_text(std::size_t, const std::string& text, std::vector<TokenReport>) override {
    items_.add(parser_.push(text));
  }

  void on_end(std::size_t, const Summary& summary, std::vector<TokenReport>) override {
    items_.add(parser_.finish());
    items_.finish(summary.finish_reason == FinishReason::stop);
  }

  void finish() override {
    const Summary& summary = summaries_.front();
    const bool complete = summary.finish_reason == FinishReason::stop;
    Json answer = response(complete ? "completed" : "incomplete");
    if (!complete) answer["incomplete_details"] = {{"reason", "max_output_tokens"}};
    const std::size_t reasoning =
        reasoning_tokens(engine_.tokenizer(), request_.prompt.format, summary.tokens);
    answer["usage"] = {{"input_tokens", summary.prompt_tokens},
                       {"input_tokens_details", {{"cached_tokens", summary.reused_tokens}}},
                       {"output_tokens", summary.generated_tokens},
                       {"output_tokens_details", {{"reasoning_tokens", reasoning}}},
                       {"total_tokens", summary.prompt_tokens + summary.generated_tokens}};
    if (!stream_) return exchange_->respond({.body = to_text(answer)});
    emit(complete ? "response.completed" : "response.incomplete",
         {{"response", std::move(answer)}});
    end_stream("");
  }

  Json response(const char* status) const {
    Json answer = {{"id", id_},
                   {"object", "response"},
                   {"created_at", created_},
                   {"status", status},
                   {"error", nullptr},
                   {"incomplete_details", nullptr},
                   {"model", engine_.options().model_id},
                   {"output", items_.to_json()},
                   {"previous_response_id", nullptr},
                   {"store", false},
                   {"usage", nullptr}};
    answer.update(request_.echoed);
    return answer;
  }

  void emit(std::string_view type, const Json& event) {
    if (!stream_) return;
    Json numbered = {{"type", type}, {"sequence_number", sequence_++}};
    numbered.update(event);
    send_event(type, numbered);
  }

  const ResponseRequest request_;
  const std::string id_;
  const std::time_t created_;
  OutputParser parser_;
  ResponseItems items_;
  std::uint64_t sequence_ = 0;
};

}  // namespace

void handle_response(Engine& engine, const std::shared_ptr<Exchange>& exchange) {
  engine.model();
  ResponseRequest request = read_response_request(engine, parse_body(exchange->request().body));
  std::make_shared<ResponseCall>(engine, exchange, std::move(request))->start();
}

}  // namespace edgerunner::server
