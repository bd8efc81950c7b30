#include "edgerunner/session.h"

#include <algorithm>
#include <exception>
#include <future>
#include <utility>

#include "edgerunner/error.h"
#include "runtime/arg_max.h"
#include "runtime/check_tokens.h"
#include "runtime/sampler.h"
#include "runtime/session_state.h"
#include "runtime/task.h"

namespace edgerunner {
namespace {

// One computation of a whole sequence, for a caller that waits. The spans are the caller's.
class LogitsTask : public Task {
 public:
  LogitsTask(std::span<const TokenId> tokens, std::span<float> out,
             std::shared_ptr<const AdapterSet> adapters)
      : tokens_(tokens), out_(out), adapters_(std::move(adapters)) {}

  std::uint32_t wait_for_reused() {
    done_.get_future().get();
    return reused_;
  }

  std::span<const TokenId> tokens() const override { return tokens_; }
  const AdapterSet* adapters() const override { return adapters_.get(); }
  bool cancelled() const override { return false; }
  void start(std::uint32_t reused) override { reused_ = reused; }
  Step advance(std::span<float> logits) override {
    std::copy(logits.begin(), logits.end(), out_.begin());
    done_.set_value();
    return Step::done;
  }
  void cancel() noexcept override {
    fail(std::make_exception_ptr(Error(ErrorCode::cancelled, "the computation was cancelled")));
  }
  void fail(const std::exception_ptr& error) noexcept override { done_.set_exception(error); }

 private:
  std::span<const TokenId> tokens_;
  std::span<float> out_;
  std::shared_ptr<const AdapterSet> adapters_;
  std::uint32_t reused_ = 0;
  std::promise<void> done_;
};

}  // namespace

Session::State::State(std::shared_ptr<Scheduler> scheduler, std::uint32_t vocabulary,
                      std::uint32_t context, std::shared_ptr<const AdapterSet> adapters)
    : vocab_size(vocabulary),
      scheduler_(std::move(scheduler)),
      context_(context),
      adapters_(std::move(adapters)),
      logits_(vocabulary) {}

std::span<const float> Session::State::compute(std::span<const TokenId> wanted) {
  check_sequence(wanted, vocab_size, context_);
  if (std::equal(wanted.begin(), wanted.end(), tokens_.begin(), tokens_.end())) {
    reused = static_cast<std::uint32_t>(wanted.size());
    computed = 0;
    return logits_;
  }
  tokens_.clear();
  const auto task = std::make_shared<LogitsTask>(wanted, logits_, adapters_);
  scheduler_->submit(task);
  reused = task->wait_for_reused();
  computed = static_cast<std::uint32_t>(wanted.size()) - reused;
  tokens_.assign(wanted.begin(), wanted.end());
  return logits_;
}

std::span<float> Session::State::scratch() {
  scratch_.assign(logits_.begin(), logits_.end());
  return scratch_;
}

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

std::span<const float> Session::logits(std::span<const TokenId> tokens) {
  return state_->compute(tokens);
}

Session::Greedy Session::greedy_token(std::span<const TokenId> tokens) {
  const ArgMax best = arg_max(state_->compute(tokens));
  return {.token = best.token, .finite = best.finite};
}

TokenId Session::next_token(std::span<const TokenId> tokens, const SamplingOptions& sampling) {
  Sampler sampler(sampling, state_->vocab_size);
  state_->compute(tokens);
  return sampler.sample(state_->scratch(), tokens, tokens.size());
}

std::uint32_t Session::reused_tokens() const { return state_->reused; }
std::uint32_t Session::computed_tokens() const { return state_->computed; }

}  // namespace edgerunner
