#include "server/generation_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "server/api_error.h"

namespace edgerunner::server {

// Carries one choice's outcome from the scheduler's thread to the connection's strand.
class GenerationCall::Sink : public GenerationSink {
 public:
  Sink(std::shared_ptr<GenerationCall> call, std::size_t choice,
       std::optional<std::uint32_t> wanted, Engine::Place place)
      : call_(std::move(call)), choice_(choice), wanted_(wanted), place_(std::move(place)) {}

  std::optional<std::uint32_t> reports() const override { return wanted_; }

  void report(TokenReport report) override { held_.push_back(std::move(report)); }

  void put(std::string piece) override {
    bytes_ += piece.size();
    post([choice = choice_, text = std::move(piece), reports = take_reports(false)](
             GenerationCall& call) mutable { call.take_text(choice, text, std::move(reports)); });
  }

  void end(Summary summary) noexcept override {
    place_.reset();
    call_->engine_.metrics().count_generation(summary);
    const bool all = summary.finish_reason != FinishReason::stop;
    post([choice = choice_, summary = std::move(summary),
          reports = take_reports(all)](GenerationCall& call) mutable {
      call.take_end(choice, std::move(summary), std::move(reports));
    });
    call_.reset();
  }

  void end_with(const std::exception_ptr& failure) noexcept override {
    place_.reset();
    post([failure](GenerationCall& call) { call.fail(failure); });
    call_.reset();
  }

 private:
  template <typename Work>
  void post(Work work) {
    call_->exchange_->post([call = call_, work = std::move(work)]() mutable { work(*call); });
  }

  // The reports of tokens whose text has begun to come out; `all`: nothing follows any more.
  std::vector<TokenReport> take_reports(bool all) {
    const auto end =
        all ? held_.end() : std::find_if(held_.begin(), held_.end(), [this](const auto& report) {
          return report.text_begin >= bytes_;
        });
    std::vector<TokenReport> taken(std::make_move_iterator(held_.begin()),
                                   std::make_move_iterator(end));
    held_.erase(held_.begin(), end);
    return taken;
  }

  // The scheduler's thread has these to itself.
  std::shared_ptr<GenerationCall> call_;
  const std::size_t choice_;
  const std::optional<std::uint32_t> wanted_;
  std::optional<Engine::Place> place_;
  std::vector<TokenReport> held_;
  std::size_t bytes_ = 0;  // of text put
};

void GenerationCall::launch(std::vector<ChoicePlan> choices, std::optional<std::uint32_t> reports) {
  std::vector<Engine::Place> places = engine_.take_places(choices.size());
  summaries_.resize(choices.size());
  exchange_->on_drop([self = shared_from_this()] { self->cancel(); });
  try {
    for (std::size_t i = 0; i < choices.size(); ++i) {
      const auto sink =
          std::make_shared<Sink>(shared_from_this(), i, reports, std::move(places[i]));
      engine_.submit(choices[i].prompt, choices[i].options, choices[i].grammar, sink);
      sinks_.push_back(sink);
    }
  } catch (...) {
    cancel();
    throw;
  }
  if (stream_) {
    exchange_->begin_stream("text/event-stream");
    begin_stream();
  }
}

void GenerationCall::take_text(std::size_t choice, const std::string& text,
                               std::vector<TokenReport> reports) {
  if (!over_) on_text(choice, text, std::move(reports));
}

void GenerationCall::take_end(std::size_t choice, Summary summary,
                              std::vector<TokenReport> reports) {
  if (over_) return;
  if (summary.finish_reason == FinishReason::cancelled) {
    return fail(std::make_exception_ptr(
        ApiError(503, "server_error", "the server is shutting down", "", "cancelled")));
  }
  summaries_[choice] = std::move(summary);
  on_end(choice, summaries_[choice], std::move(reports));
  if (++ended_ < summaries_.size()) return;
  over_ = true;
  sinks_.clear();
  finish();
}

void GenerationCall::fail(const std::exception_ptr& error) {
  if (over_) return;
  cancel();
  const ApiError answer = to_api_error(error);
  if (!stream_) return exchange_->respond(to_response(answer));
  exchange_->write(fmt::format("data: {}\n\n", to_json_text(answer)));
  exchange_->end_stream();
}

void GenerationCall::cancel() {
  over_ = true;
  for (const auto& sink : sinks_) sink->cancel_requested = true;
  sinks_.clear();
}

void GenerationCall::send_event(const Json& event) {
  exchange_->write(fmt::format("data: {}\n\n", to_text(event)));
}

void GenerationCall::send_event(std::string_view name, const Json& event) {
  exchange_->write(fmt::format("event: {}\ndata: {}\n\n", name, to_text(event)));
}

void GenerationCall::end_stream(std::string_view last_event) {
  if (!last_event.empty()) exchange_->write(fmt::format("data: {}\n\n", last_event));
  exchange_->end_stream();
}

Json usage_of(std::span<const Summary> summaries, std::size_t choices_per_prompt) {
  std::uint64_t prompt = 0;
  std::uint64_t reused = 0;
  std::uint64_t generated = 0;
  std::uint64_t drafted = 0;
  std::uint64_t accepted = 0;
  for (std::size_t i = 0; i < summaries.size(); ++i) {
    generated += summaries[i].generated_tokens;
    drafted += summaries[i].drafted_tokens;
    accepted += summaries[i].accepted_tokens;
    if (i % choices_per_prompt != 0) continue;
    prompt += summaries[i].prompt_tokens;
    reused += summaries[i].reused_tokens;
  }
  return {{"prompt_tokens", prompt},
          {"completion_tokens", generated},
          {"total_tokens", prompt + generated},
          {"prompt_tokens_details", {{"cached_tokens", reused}}},
          {"completion_tokens_details",
           {{"accepted_prediction_tokens", accepted},
            {"rejected_prediction_tokens", drafted - accepted}}}};
}

Json timings_of(const Summary& summary) {
  return {{"time_to_first_token_s", summary.time_to_first_token_s},
          {"prefill_tps", summary.prefill_tps},
          {"decode_tps", summary.decode_tps},
          {"drafted_tokens", summary.drafted_tokens},
          {"accepted_tokens", summary.accepted_tokens}};
}

const char* finish_reason_of(const Summary& summary) {
  return summary.finish_reason == FinishReason::stop ? "stop" : "length";
}

std::string new_id(std::string_view prefix) {
  std::random_device device;
  return fmt::format("{}{:08x}{:08x}{:08x}", prefix, device(), device(), device());
}

}  // namespace edgerunner::server
