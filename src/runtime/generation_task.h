#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "constraint/make_constraint.h"
#include "edgerunner/generation.h"
#include "edgerunner/tokenizer.h"
#include "runtime/adapter_shelf.h"
#include "runtime/generation_sink.h"
#include "runtime/sampler.h"
#include "runtime/stop_matcher.h"
#include "runtime/task.h"

namespace edgerunner {

// What a generation needs to know of its model.
struct GenerationLimits {
  std::uint32_t vocab_size = 0;
  std::uint32_t context = 0;
  std::uint32_t draft_tokens = 0;    // most guessed ahead
  SharedTrie* trie = nullptr;        // of the tokenizer; without one, a constraint makes its own
  AdapterShelf* adapters = nullptr;  // that were loaded; null: there are none
};

// A generation on the scheduler's thread: samples, detokenises, looks for stops and hands pieces of
// text to its sink.
class GenerationTask : public Task {
 public:
  // `tokenizer` may be null: then there is no text. Throws Error(invalid_argument) naming the
  // option, Error(context_full) for a prompt that is too long, Error(unsupported) for stop strings
  // without a tokenizer. `constraint`: in place of what the options ask for.
  GenerationTask(const Tokenizer* tokenizer, const GenerationLimits& limits,
                 std::span<const TokenId> prompt, const GenerateOptions& options,
                 std::shared_ptr<GenerationSink> sink, std::stop_token stop = {},
                 std::unique_ptr<Constraint> constraint = nullptr);

  std::span<const TokenId> tokens() const override { return tokens_; }
  const AdapterSet* adapters() const override { return adapters_.get(); }
  bool cancelled() const override;
  void start(std::uint32_t reused) override;
  std::optional<Wish> wish() const override;
  std::optional<Wish> outlook() const override;
  void guessed(std::span<const TokenId> tokens) override;
  Step take(TokenId token) override;
  Step advance(std::span<float> logits) override;
  void cancel() noexcept override;
  void fail(const std::exception_ptr& error) noexcept override;

 private:
  using Clock = std::chrono::steady_clock;

  void check(std::span<const TokenId> prompt) const;
  std::string text_of(TokenId token);
  std::uint64_t next_index() const { return std::uint64_t{summary_.prompt_tokens} + sampled_; }
  bool ends(TokenId token) const;
  std::optional<TokenReport> begin_report(std::span<const float> logits);
  void measure();
  void emit(std::string piece);
  void shift_context();
  Step finish(FinishReason reason);

  const Tokenizer* tokenizer_;
  GenerationLimits limits_;
  GenerateOptions options_;
  std::stop_token stop_;
  std::shared_ptr<GenerationSink> sink_;
  Sampler sampler_;
  std::unique_ptr<Constraint> constraint_;  // null where anything may come
  std::optional<StreamDecoder> decoder_;
  StopMatcher matcher_;
  std::shared_ptr<const AdapterSet> adapters_;  // null: none applies
  std::vector<TokenId> tokens_;
  std::span<const TokenId> guesses_;  // of the coming tokens, as long as they turn out right
  std::vector<float> unchanged_;      // logits before sampling, [vocab_size]; empty without reports
  std::optional<TokenReport> report_;  // of the token that is being taken
  double log_sum_ = 0;                 // of unchanged_
  std::size_t decoded_bytes_ = 0;
  Summary summary_;
  std::uint32_t to_compute_ = 0;  // prompt tokens that were not in the cache
  std::uint32_t sampled_ = 0;     // tokens, the one that ends it too
  Clock::time_point submitted_ = Clock::now();
  Clock::time_point started_;
  Clock::time_point first_token_;
};

}  // namespace edgerunner
