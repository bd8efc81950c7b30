#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "edgerunner/embedding.h"
#include "edgerunner/types.h"
#include "runtime/task.h"

namespace edgerunner {

// The embedding of a text: its hidden states after the final norm, pooled and scaled to length 1.
class EmbeddingTask : public Task {
 public:
  // One of the two is called once, on the scheduler's thread.
  using Done = std::function<void(std::vector<float> embedding)>;
  using Failed = std::function<void(const std::exception_ptr& error)>;

  EmbeddingTask(std::vector<TokenId> tokens, Pooling pooling, Done done, Failed failed,
                std::shared_ptr<const AdapterSet> adapters = nullptr)
      : tokens_(std::move(tokens)),
        pooling_(pooling),
        done_(std::move(done)),
        failed_(std::move(failed)),
        adapters_(std::move(adapters)) {}

  std::atomic<bool> cancel_requested = false;

  std::span<const TokenId> tokens() const override { return tokens_; }
  const AdapterSet* adapters() const override { return adapters_.get(); }
  bool cancelled() const override { return cancel_requested; }
  bool wants_hidden() const override { return true; }
  void start(std::uint32_t /*reused*/) override {}
  Step take_hidden(std::uint32_t first, std::uint32_t rows, std::span<const float> hidden) override;
  Step advance(std::span<float> /*logits*/) override { return Step::done; }
  void cancel() noexcept override;
  void fail(const std::exception_ptr& error) noexcept override;

 private:
  std::vector<TokenId> tokens_;
  Pooling pooling_;
  Done done_;
  Failed failed_;
  std::shared_ptr<const AdapterSet> adapters_;  // null: none applies
  std::vector<double> sum_;                     // [dim]
};

}  // namespace edgerunner
