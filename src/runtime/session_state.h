#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "arch/adapter_set.h"
#include "edgerunner/session.h"
#include "runtime/scheduler.h"

namespace edgerunner {

// A session keeps no place in the KV cache between calls: each call is a task of the scheduler,
// which finds what is cached, whoever computed it. It keeps the last logits alone.
struct Session::State {
  State(std::shared_ptr<Scheduler> scheduler, std::uint32_t vocab_size, std::uint32_t context,
        std::shared_ptr<const AdapterSet> adapters);

  // Logits after the last token; valid until the next call with other tokens.
  std::span<const float> compute(std::span<const TokenId> wanted);

  // A copy of the last logits, to be changed.
  std::span<float> scratch();

  std::uint32_t vocab_size;
  std::uint32_t reused = 0;
  std::uint32_t computed = 0;

 private:
  std::shared_ptr<Scheduler> scheduler_;
  std::uint32_t context_;
  std::shared_ptr<const AdapterSet> adapters_;  // null: none applies
  std::vector<TokenId> tokens_;  // that logits_ come after; empty where there are none
  std::vector<float> logits_;    // [vocab_size]
  std::vector<float> scratch_;   // [vocab_size]
};

}  // namespace edgerunner
