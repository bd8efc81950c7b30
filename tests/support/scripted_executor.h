#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "backend/executor.h"
#include "backend/token_chooser.h"
#include "runtime/sampler.h"

namespace edgerunner::test {

// Ordinary executor options for a script.
inline ExecutorOptions scripted_options() {
  ExecutorOptions options;
  options.max_rows = 512 + 8;
  options.max_logit_rows = 8;
  options.pages = 64;
  options.max_context = 1024;
  return options;
}

// An executor whose "keys and values" are the tokens themselves, written to pages and read back
// from them: a script sees the tokens that the page tables lead to, so that a mistake in them
// changes what is generated. The script names the token that follows; its logit is far above the
// others, which depend on all the tokens seen.
class ScriptedExecutor : public Executor {
 public:
  // The token after `seen`: the whole sequence, or what the window shows of it.
  using Script = std::function<TokenId(std::span<const TokenId> seen)>;

  struct Slice {
    std::uint32_t start;
    std::uint32_t rows;
  };
  using Pass = std::vector<Slice>;

  ScriptedExecutor(std::uint32_t vocab_size, Script script,
                   const ExecutorOptions& options = scripted_options(), std::uint32_t window = 0)
      : vocab_size_(vocab_size),
        window_(window),
        script_(std::move(script)),
        options_(options),
        cells_(std::size_t{options.pages} * kPageTokens, kNoToken) {
    info_.backend = "script";
  }

  void forward(const Batch& batch, std::span<float> logits) override {
    if (before_forward) before_forward(batch);
    DecoderSpec spec;
    spec.vocab_size = vocab_size_;
    if (window_ > 0) spec.layers.push_back({.sliding_window = window_});
    check_batch(batch, spec, options_, logits.size());
    Pass pass;
    std::uint32_t row = 0;
    std::size_t next_logits = 0;
    for (const SequenceSlice& slice : batch.sequences) {
      pass.push_back({slice.start, slice.rows});
      for (std::uint32_t i = 0; i < slice.rows; ++i, ++row) {
        const std::uint32_t position = slice.start + i;
        cell(slice, position) = batch.tokens[row];
        if (next_logits == batch.logit_rows.size() || batch.logit_rows[next_logits] != row)
          continue;
        write_logits(slice, position, logits.subspan(next_logits++ * vocab_size_, vocab_size_));
      }
    }
    const std::lock_guard lock(mutex_);
    passes_.push_back(std::move(pass));
  }

  void copy_page(PageId from, PageId to, std::uint32_t tokens) override {
    const auto source = cells_.begin() + std::ptrdiff_t{from} * kPageTokens;
    const auto target = cells_.begin() + std::ptrdiff_t{to} * kPageTokens;
    std::fill(target, target + kPageTokens, kNoToken);
    std::copy(source, source + tokens, target);
    ++copies;
  }

  const ExecutorInfo& info() const override { return info_; }
  const ExecutorOptions& options() const override { return options_; }
  TokenChooser* chooser() override { return chooser_.get(); }

  // From now on tokens can be chosen here, by the runtime's Sampler.
  void choose_tokens() { chooser_ = std::make_unique<Chooser>(*this); }
  std::function<bool(std::uint64_t index)> leaves_to_caller;  // of the token with this index
  std::vector<std::uint32_t> bursts;                          // steps of each call of choose()

  // What was run so far; may be called while it runs.
  std::vector<Pass> passes() const {
    const std::lock_guard lock(mutex_);
    return passes_;
  }

  // Called before each forward pass, on the scheduler's thread; may wait or throw.
  std::function<void(const Batch&)> before_forward;
  int copies = 0;

 private:
  class Chooser : public TokenChooser {
   public:
    explicit Chooser(ScriptedExecutor& executor) : executor_(executor) {}
    bool can_choose(const SamplingOptions& options) const override {
      return options.logit_bias.size() < 2;
    }
    std::uint32_t most_steps() const override { return 5; }

    void choose(const Batch& batch, std::span<const TokenChoice> choices, std::uint32_t steps,
                std::span<TokenId> tokens) override {
      executor_.bursts.push_back(steps);
      const std::uint32_t vocab = executor_.vocab_size_;
      std::vector<float> logits(choices.size() * vocab);
      std::vector<TokenId> rows(batch.tokens.begin(), batch.tokens.end());
      std::vector<SequenceSlice> slices(batch.sequences.begin(), batch.sequences.end());
      std::vector<std::vector<TokenId>> histories;
      for (const TokenChoice& choice : choices) {
        histories.emplace_back(choice.history.begin(), choice.history.end());
      }
      for (std::uint32_t step = 0; step < steps; ++step) {
        executor_.forward({rows, slices, batch.logit_rows}, logits);
        for (std::size_t i = 0; i < choices.size(); ++i) {
          const std::uint64_t index = choices[i].index + step;
          TokenId& token = tokens[step * choices.size() + i];
          token = Sampler(*choices[i].sampling, vocab)
                      .sample(std::span(logits).subspan(i * vocab, vocab), histories[i], index);
          histories[i].push_back(token);
          if (steps > 1) {
            rows[i] = token;
            ++slices[i].start;
          }
          if (executor_.leaves_to_caller && executor_.leaves_to_caller(index)) token = kNoToken;
        }
      }
    }

   private:
    ScriptedExecutor& executor_;
  };

  TokenId& cell(const SequenceSlice& slice, std::uint32_t position) {
    const PageId page = slice.pages[position / kPageTokens];
    return cells_[std::size_t{page} * kPageTokens + position % kPageTokens];
  }

  void write_logits(const SequenceSlice& slice, std::uint32_t position, std::span<float> out) {
    const std::uint32_t first = window_ == 0 || position < window_ ? 0 : position + 1 - window_;
    std::vector<TokenId> seen;
    std::uint64_t hash = 1469598103934665603U;
    for (std::uint32_t p = first; p <= position; ++p) {
      seen.push_back(cell(slice, p));
      if (seen.back() < 0) throw std::logic_error("a position was read that was never written");
      hash = (hash ^ static_cast<std::uint64_t>(seen.back())) * 1099511628211U;
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint64_t noise = (hash + i * 0x9E3779B97F4A7C15U) * 0xBF58476D1CE4E5B9U;
      out[i] = static_cast<float>(noise >> 40) * 0x1p-24F;
    }
    const TokenId next = script_(seen);
    if (next >= 0) out[next] += 20.0F;
  }

  std::uint32_t vocab_size_;
  std::uint32_t window_;
  Script script_;
  ExecutorOptions options_;
  ExecutorInfo info_;
  std::unique_ptr<Chooser> chooser_;
  std::vector<TokenId> cells_;  // [pages, kPageTokens]
  mutable std::mutex mutex_;
  std::vector<Pass> passes_;
};

}  // namespace edgerunner::test
