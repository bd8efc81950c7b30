#include "runtime/perplexity.h"

#include <algorithm>
#include <numeric>

#include "runtime/score.h"

namespace edgerunner {

std::vector<TextWindow> text_windows(std::size_t tokens, std::size_t length, std::size_t stride) {
  std::vector<TextWindow> windows;
  std::size_t scored = 1;  // nothing predicts the first token
  for (std::size_t begin = 0; scored < tokens; begin += stride) {
    const std::size_t end = std::min(begin + length, tokens);
    windows.push_back({begin, scored, end});
    scored = end;
  }
  return windows;
}

void score_windows(Executor& executor, std::uint32_t vocab_size, std::span<const TokenId> tokens,
                   std::span<const TextWindow> windows, const TokenVisitor& visit,
                   const AdapterSet* adapters) {
  std::vector<std::uint32_t> positions;
  for (const TextWindow& window : windows) {
    // The logits of a position predict the token after it.
    positions.resize(window.end - window.scored);
    std::iota(positions.begin(), positions.end(),
              static_cast<std::uint32_t>(window.scored - window.begin - 1));
    score(
        executor, vocab_size, tokens.subspan(window.begin, window.end - window.begin), positions,
        [&](std::uint32_t position, std::span<const float> logits) {
          visit(window.begin + position + 1, logits);
        },
        adapters);
  }
}

}  // namespace edgerunner
