#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "edgerunner/generation.h"
#include "edgerunner/types.h"

namespace edgerunner {

// A token and the natural logarithm of its probability by the model alone: before bias, penalties
// and temperature.
struct TokenLogprob {
  TokenId token = kNoToken;
  float logprob = 0;
};

// One token of the output.
struct TokenReport {
  TokenLogprob chosen;
  std::vector<TokenLogprob> likeliest;  // the likeliest first; of equals, the lowest id
  std::size_t text_begin = 0;           // bytes of text that the tokens before it completed
};

// Where the outcome of a generation goes. Called on the scheduler's thread, which computes for all
// generations and must not be kept waiting. One of `end` and `end_with` is the last call.
class GenerationSink {
 public:
  virtual ~GenerationSink() = default;

  // How many of the likeliest tokens each report is to hold; nullopt: no reports are wanted.
  virtual std::optional<std::uint32_t> reports() const { return std::nullopt; }
  // Before the text that the token completes; by value, for those who keep it.
  virtual void report(TokenReport /*report*/) {}  // NOLINT(performance-unnecessary-value-param)

  // Text that is certain: whole characters, before any stop string. Never empty.
  virtual void put(std::string piece) = 0;
  virtual void end(Summary summary) noexcept = 0;
  virtual void end_with(const std::exception_ptr& failure) noexcept = 0;

  std::atomic<bool> cancel_requested = false;  // asked before each forward pass
};

}  // namespace edgerunner
