#include "runtime/generation_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "edgerunner/error.h"
#include "runtime/arg_max.h"
#include "runtime/check_tokens.h"
#include "runtime/logprobs.h"

namespace edgerunner {
namespace {

double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

double rate(double count, double time) { return time > 0 ? count / time : 0; }

}  // namespace

GenerationTask::GenerationTask(const Tokenizer* tokenizer, const GenerationLimits& limits,
                               std::span<const TokenId> prompt, const GenerateOptions& options,
                               std::shared_ptr<GenerationSink> sink, std::stop_token stop,
                               std::unique_ptr<Constraint> constraint)
    : tokenizer_(tokenizer),
      limits_(limits),
      options_(options),
      stop_(std::move(stop)),
      sink_(std::move(sink)),
      sampler_(options.sampling, limits.vocab_size),
      constraint_(std::move(constraint)),
      matcher_(options.stop),
      tokens_(prompt.begin(), prompt.end()) {
  check(prompt);
  if (tokenizer != nullptr) decoder_.emplace(*tokenizer);
  if (!constraint_) {
    constraint_ = make_constraint(options.json_schema, options.grammar, tokenizer, limits.trie);
  }
  if (limits.adapters != nullptr) adapters_ = limits.adapters->choose(options.adapters);
  summary_.prompt_tokens = static_cast<std::uint32_t>(prompt.size());
  while (tokens_.size() > limits.context) shift_context();
}

void GenerationTask::check(std::span<const TokenId> prompt) const {
  check_tokens(prompt, limits_.vocab_size);
  if (tokenizer_ == nullptr && !options_.stop.empty()) {
    throw Error(ErrorCode::unsupported,
                "stop strings need a tokenizer, which this file has not; use stop_tokens");
  }
  if (options_.circular_context && options_.keep_tokens >= limits_.context) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("keep_tokens is {}; it must be less than the context of {} tokens",
                            options_.keep_tokens, limits_.context));
  }
  if (options_.guessing == Guessing::lookup && limits_.draft_tokens == 0) {
    throw Error(ErrorCode::invalid_argument,
                "guessing by lookup is asked for, but the model was loaded without room for "
                "guesses; load it with speculation.on_request");
  }
  if (!options_.circular_context && prompt.size() > limits_.context) {
    throw Error(
        ErrorCode::context_full,
        fmt::format("the prompt has {} tokens and the context holds {}; shorten it, or load "
                    "the model with a longer context",
                    prompt.size(), limits_.context));
  }
}

bool GenerationTask::cancelled() const { return sink_->cancel_requested || stop_.stop_requested(); }

void GenerationTask::start(std::uint32_t reused) {
  started_ = Clock::now();
  summary_.reused_tokens = reused;
  to_compute_ = static_cast<std::uint32_t>(tokens_.size()) - reused;
}

std::optional<Task::Wish> GenerationTask::wish() const {
  if (sink_->reports() || constraint_) return std::nullopt;
  return outlook();
}

std::optional<Task::Wish> GenerationTask::outlook() const {
  const auto room = limits_.context + 1 - static_cast<std::uint32_t>(tokens_.size());
  const std::uint32_t most =
      options_.max_tokens > 0 ? std::min(room, options_.max_tokens - sampled_) : room;
  return Wish{&options_.sampling, next_index(), most, options_.guessing, options_.draft_tokens};
}

void GenerationTask::guessed(std::span<const TokenId> tokens) {
  guesses_ = tokens;
  summary_.drafted_tokens += static_cast<std::uint32_t>(tokens.size());
}

Task::Step GenerationTask::advance(std::span<float> logits) {
  report_ = begin_report(logits);
  if (!constraint_) return take(sampler_.sample(logits, tokens_, next_index()));
  const TokenId token = sampler_.sample(logits, tokens_, next_index(), constraint_->mask());
  constraint_->accept(token);
  return take(token);
}

Task::Step GenerationTask::take(TokenId token) {
  ++sampled_;
  measure();
  if (!guesses_.empty()) {
    const bool right = guesses_.front() == token;
    if (right) ++summary_.accepted_tokens;
    guesses_ = right ? guesses_.subspan(1) : std::span<const TokenId>();
  }
  if (ends(token)) return finish(FinishReason::stop);

  tokens_.push_back(token);
  summary_.tokens.push_back(token);
  if (report_) {
    report_->chosen = {.token = token, .logprob = static_cast<float>(unchanged_[token] - log_sum_)};
    sink_->report(std::move(*report_));
  }
  if (decoder_) {
    const std::string decoded = text_of(token);
    decoded_bytes_ += decoded.size();
    emit(matcher_.push(decoded));
  }
  if (matcher_.stopped() || (constraint_ && constraint_->finished())) {
    return finish(FinishReason::stop);
  }
  if (options_.max_tokens > 0 && sampled_ >= options_.max_tokens) {
    return finish(FinishReason::length);
  }
  if (tokens_.size() <= limits_.context) return Step::append;
  if (!options_.circular_context) return finish(FinishReason::context_full);
  shift_context();
  return Step::restart;
}

std::string GenerationTask::text_of(TokenId token) {
  const std::vector<TokenId>& visible = options_.visible_tokens;
  if (std::find(visible.begin(), visible.end(), token) == visible.end()) {
    return decoder_->push(token);
  }
  return decoder_->finish() + tokenizer_->token_bytes(token, true);
}

// Sampling uses the logits up, so what the report needs of them is taken before.
std::optional<TokenReport> GenerationTask::begin_report(std::span<const float> logits) {
  const std::optional<std::uint32_t> count = sink_->reports();
  if (!count || !all_finite(logits)) return std::nullopt;  // the sampler refuses such logits
  unchanged_.assign(logits.begin(), logits.end());
  log_sum_ = log_sum_exp(unchanged_);
  return TokenReport{.likeliest = likeliest_tokens(unchanged_, log_sum_, *count),
                     .text_begin = decoded_bytes_};
}

bool GenerationTask::ends(TokenId token) const {
  if (std::find(options_.stop_tokens.begin(), options_.stop_tokens.end(), token) !=
      options_.stop_tokens.end()) {
    return true;
  }
  return tokenizer_ != nullptr && !options_.ignore_eos && tokenizer_->is_end_of_generation(token);
}

void GenerationTask::measure() {
  const Clock::time_point now = Clock::now();
  if (sampled_ == 1) {
    first_token_ = now;
    summary_.time_to_first_token_s = seconds(now - submitted_);
    summary_.prefill_seconds = seconds(now - started_);
    summary_.prefill_tps = rate(to_compute_, summary_.prefill_seconds);
  } else {
    summary_.decode_seconds = seconds(now - first_token_);
    summary_.decode_tps = rate(sampled_ - 1, summary_.decode_seconds);
  }
}

void GenerationTask::emit(std::string piece) {
  if (!piece.empty()) sink_->put(std::move(piece));
}

void GenerationTask::shift_context() {
  const std::size_t kept = std::min<std::size_t>(options_.keep_tokens, tokens_.size() - 1);
  const std::size_t dropped = (tokens_.size() - kept + 1) / 2;
  const auto first = tokens_.begin() + static_cast<std::ptrdiff_t>(kept);
  tokens_.erase(first, first + static_cast<std::ptrdiff_t>(dropped));
  ++summary_.context_shifts;
}

Task::Step GenerationTask::finish(FinishReason reason) {
  if (decoder_ && !matcher_.stopped()) {
    emit(matcher_.push(decoder_->finish()));
    emit(matcher_.finish());
  }
  summary_.finish_reason = reason;
  summary_.generated_tokens = static_cast<std::uint32_t>(summary_.tokens.size());
  sink_->end(std::move(summary_));
  return Step::done;
}

void GenerationTask::cancel() noexcept {
  try {
    finish(FinishReason::cancelled);
  } catch (...) {
    fail(std::current_exception());
  }
}

void GenerationTask::fail(const std::exception_ptr& error) noexcept { sink_->end_with(error); }

}  // namespace edgerunner
