#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "backend/executor.h"

namespace edgerunner {

// A stretch of a long text that a model reads at once: tokens [begin, end), of which those from
// `scored` on are predicted and judged, each from all that stand before it in the window.
struct TextWindow {
  std::size_t begin = 0;
  std::size_t scored = 0;
  std::size_t end = 0;
};

// Windows of `length` tokens, each `stride` after the last, the last one as long as the text is.
// Every token but the first is scored once, in the first window that holds it: with at least
// length - stride tokens before it, save in the first window. This is how Hugging Face's
// documentation measures the perplexity of fixed-length models. 1 <= stride <= length - 1.
std::vector<TextWindow> text_windows(std::size_t tokens, std::size_t length, std::size_t stride);

// Runs `tokens` window by window, each from an empty cache, and hands every scored token and the
// logits, [vocab_size], that predict it to `visit`, in the text's order. `adapters` apply, or null.
using TokenVisitor = std::function<void(std::size_t index, std::span<const float> logits)>;
void score_windows(Executor& executor, std::uint32_t vocab_size, std::span<const TokenId> tokens,
                   std::span<const TextWindow> windows, const TokenVisitor& visit,
                   const AdapterSet* adapters = nullptr);

}  // namespace edgerunner
