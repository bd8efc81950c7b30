#include "runtime/check_tokens.h"

#include <fmt/format.h>

#include <cstddef>

#include "edgerunner/error.h"

namespace edgerunner {

void check_tokens(std::span<const TokenId> tokens, std::uint32_t vocab_size) {
  if (tokens.empty()) {
    throw Error(ErrorCode::invalid_argument, "there are no tokens to start from; give a prompt");
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= 0 && static_cast<std::uint32_t>(tokens[i]) < vocab_size) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("token {} (number {} of the sequence) is not in the vocabulary of {}",
                            tokens[i], i + 1, vocab_size));
  }
}

void check_sequence(std::span<const TokenId> tokens, std::uint32_t vocab_size,
                    std::uint32_t context) {
  check_tokens(tokens, vocab_size);
  if (tokens.size() > context) {
    throw Error(ErrorCode::context_full,
                fmt::format("the sequence has {} tokens and the context holds {}; shorten it, or "
                            "load the model with a longer context",
                            tokens.size(), context));
  }
}

}  // namespace edgerunner
