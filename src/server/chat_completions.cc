#include "server/chat_completions.h"

#include <ctime>
#include <iterator>
#include <utility>

#include "server/chat_message.h"
#include "server/chat_request.h"
#include "server/generation_call.h"
#include "server/logprob_json.h"

namespace edgerunner::server {
namespace {

class ChatCall : public GenerationCall {
 public:
  ChatCall(Engine& engine, std::shared_ptr<Exchange> exchange, ChatRequest request)
      : GenerationCall(engine, std::move(exchange), request.stream),
        request_(std::move(request)),
        id_(new_id("chatcmpl-")),
        created_(std::time(nullptr)) {}

  void start() {
    std::vector<ChoicePlan> plans;
    for (std::size_t i = 0; i < request_.n; ++i) {
      plans.push_back({.prompt = request_.prompt.ids,
                       .options = request_.options,
                       .grammar = request_.grammar});
      plans.back().options.sampling.seed += i;
      choices_.push_back({ChatMessage(request_.prompt.format), {}});
    }
    launch(std::move(plans), request_.top_logprobs);
  }

 private:
  struct Choice {
    ChatMessage message;
    std::vector<TokenReport> reports;  // not yet sent
  };

  void begin_stream() override {
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      send_chunk(i, {{"role", "assistant"}, {"content", ""}}, nullptr);
    }
  }

  void on_text(std::size_t choice, const std::string& text,
               std::vector<TokenReport> reports) override {
    const OutputDelta delta = choices_[choice].message.push(text);
    keep(choice, std::move(reports));
    if (stream_ && !delta.empty()) {
      send_chunk(choice, choices_[choice].message.to_json(delta), nullptr);
    }
  }

  void on_end(std::size_t choice, const Summary& summary,
              std::vector<TokenReport> reports) override {
    ChatMessage& message = choices_[choice].message;
    const OutputDelta delta = message.finish();
    keep(choice, std::move(reports));
    if (!stream_) return;
    if (!delta.empty()) send_chunk(choice, message.to_json(delta), nullptr);
    send_chunk(choice, Json::object(), reason(message, summary));
  }

  void finish() override {
    if (stream_) {
      if (request_.include_usage) {
        Json event = envelope("chat.completion.chunk");
        event["choices"] = Json::array();
        add_usage(event);
        send_event(event);
      }
      return end_stream("[DONE]");
    }
    Json answer = envelope("chat.completion");
    Json& list = answer["choices"] = Json::array();
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      list.push_back({{"index", i},
                      {"message", choices_[i].message.to_json()},
                      {"logprobs", take_logprobs(i)},
                      {"finish_reason", reason(choices_[i].message, summaries_[i])}});
    }
    add_usage(answer);
    exchange_->respond({.body = to_text(answer)});
  }

  static const char* reason(const ChatMessage& message, const Summary& summary) {
    if (message.calls_tools() && summary.finish_reason == FinishReason::stop) return "tool_calls";
    return finish_reason_of(summary);
  }

  void keep(std::size_t choice, std::vector<TokenReport> reports) {
    std::move(reports.begin(), reports.end(), std::back_inserter(choices_[choice].reports));
  }

  Json take_logprobs(std::size_t choice) {
    if (!request_.top_logprobs) return nullptr;
    const auto reports = std::exchange(choices_[choice].reports, {});
    return {{"content", chat_logprobs(engine_.tokenizer(), reports)}, {"refusal", nullptr}};
  }

  Json envelope(const char* object) const {
    return {{"id", id_},
            {"object", object},
            {"created", created_},
            {"model", engine_.options().model_id}};
  }

  void add_usage(Json& answer) const {
    answer["usage"] = usage_of(summaries_, request_.n);
    std::size_t reasoning = 0;
    for (const Summary& summary : summaries_) {
      reasoning += reasoning_tokens(engine_.tokenizer(), request_.prompt.format, summary.tokens);
    }
    answer["usage"]["completion_tokens_details"]["reasoning_tokens"] = reasoning;
    answer["timings"] = timings_of(summaries_.front());
  }

  void send_chunk(std::size_t choice, Json delta, const char* finish_reason) {
    Json event = envelope("chat.completion.chunk");
    event["choices"] =
        Json::array({{{"index", choice},
                      {"delta", std::move(delta)},
                      {"logprobs", take_logprobs(choice)},
                      {"finish_reason", finish_reason == nullptr ? Json() : Json(finish_reason)}}});
    if (request_.include_usage) event["usage"] = nullptr;
    send_event(event);
  }

  const ChatRequest request_;
  const std::string id_;
  const std::time_t created_;
  std::vector<Choice> choices_;
};

}  // namespace

void handle_chat_completion(Engine& engine, const std::shared_ptr<Exchange>& exchange) {
  engine.model();
  ChatRequest request = read_chat_request(engine, parse_body(exchange->request().body));
  std::make_shared<ChatCall>(engine, exchange, std::move(request))->start();
}

}  // namespace edgerunner::server
