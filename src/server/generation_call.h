#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "edgerunner/generation.h"
#include "runtime/generation_sink.h"
#include "server/engine.h"
#include "server/exchange.h"
#include "server/json.h"

namespace edgerunner::server {

// What one choice of an answer is to be generated from.
struct ChoicePlan {
  std::vector<TokenId> prompt;
  GenerateOptions options;
  std::shared_ptr<const Grammar> grammar = nullptr;  // what the text is held to
};

// A request that is answered by generating one or more choices, whole or as a stream of events.
// What it shares: places, sinks, the end, failure, and a client that goes away. Everything runs on
// the strand of its connection.
class GenerationCall : public std::enable_shared_from_this<GenerationCall> {
 public:
  virtual ~GenerationCall() = default;
  GenerationCall(const GenerationCall&) = delete;
  GenerationCall& operator=(const GenerationCall&) = delete;

 protected:
  GenerationCall(Engine& engine, std::shared_ptr<Exchange> exchange, bool stream)
      : engine_(engine), exchange_(std::move(exchange)), stream_(stream) {}

  // Starts every choice; `reports`: the likeliest tokens that each report is to hold.
  void launch(std::vector<ChoicePlan> choices, std::optional<std::uint32_t> reports);

  // Text of a choice, and the reports of the tokens that it begins with. What a stop string cut off
  // has none.
  virtual void on_text(std::size_t choice, const std::string& text,
                       std::vector<TokenReport> reports) = 0;
  virtual void on_end(std::size_t choice, const Summary& summary,
                      std::vector<TokenReport> reports) = 0;
  virtual void begin_stream() {}  // events before the first text
  virtual void finish() = 0;      // every choice has ended: the answer or its last events

  void send_event(const Json& event);                         // data: {...}
  void send_event(std::string_view name, const Json& event);  // with a name before
  void end_stream(std::string_view last_event);

  Engine& engine_;
  const std::shared_ptr<Exchange> exchange_;
  const bool stream_;
  std::vector<Summary> summaries_;  // of the choices that have ended

 private:
  class Sink;

  void take_text(std::size_t choice, const std::string& text, std::vector<TokenReport> reports);
  void take_end(std::size_t choice, Summary summary, std::vector<TokenReport> reports);
  void fail(const std::exception_ptr& error);
  void cancel();

  std::vector<std::shared_ptr<Sink>> sinks_;
  std::size_t ended_ = 0;
  bool over_ = false;  // answered, failed or abandoned
};

// {"prompt_tokens":..., ...} of all choices; a prompt that several share counts once.
Json usage_of(std::span<const Summary> summaries, std::size_t choices_per_prompt);
// Speeds, which OpenAI's answers don't have, of the first choice.
Json timings_of(const Summary& summary);

const char* finish_reason_of(const Summary& summary);  // in OpenAI's words

std::string new_id(std::string_view prefix);  // "cmpl-", and what no other answer has

}  // namespace edgerunner::server
