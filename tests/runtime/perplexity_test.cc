#include "runtime/perplexity.h"

#include <gmock/gmock.h>

#include "support/random_decoder.h"

namespace edgerunner::test {
namespace {

// The loop of Hugging Face's documentation ("Perplexity of fixed-length models"), which masks the
// targets of a window that an earlier one has scored: for each target its window's begin.
std::vector<std::size_t> begin_of_each(std::size_t length, std::size_t max_length,
                                       std::size_t stride) {
  std::vector<std::size_t> begins(length, SIZE_MAX);
  std::size_t previous_end = 0;
  for (std::size_t begin = 0; begin < length; begin += stride) {
    const std::size_t end = std::min(begin + max_length, length);
    const std::size_t targets = end - previous_end;
    for (std::size_t i = end - targets; i < end; ++i) {
      if (i > begin) begins[i] = begin;  // the shift by one drops a window's first token
    }
    previous_end = end;
    if (end == length) break;
  }
  return begins;
}

TEST(TextWindows, AreThoseOfTheField) {
  for (const std::size_t length : {2U, 7U, 8U, 9U, 30U, 64U}) {
    for (const auto& [window, stride] : std::vector<std::pair<std::size_t, std::size_t>>{
             {8, 4}, {8, 7}, {8, 1}, {2, 1}, {100, 50}}) {
      const auto expected = begin_of_each(length, window, stride);
      std::vector<std::size_t> got(length, SIZE_MAX);
      for (const TextWindow& w : text_windows(length, window, stride)) {
        EXPECT_LE(w.end - w.begin, window);
        for (std::size_t i = w.scored; i < w.end; ++i) got[i] = w.begin;
      }
      EXPECT_EQ(got, expected) << length << " tokens, window " << window << ", stride " << stride;
    }
  }
}

TEST(ScoreWindows, PredictsEveryTokenFromItsWindowAlone) {
  const RandomDecoder model({.layers = 1});
  const std::uint32_t vocab = model.decoder().spec.vocab_size;
  const auto executor = make_reference_executor(
      model.decoder(), {.max_rows = 7, .max_logit_rows = 3, .pages = 1, .max_context = 64});
  const auto tokens = model.tokens(30, 5);
  const auto windows = text_windows(tokens.size(), 12, 5);
  std::size_t next = 1;
  score_windows(
      *executor, vocab, tokens, windows, [&](std::size_t index, std::span<const float> logits) {
        EXPECT_EQ(index, next++);
        // Alone, from the window's begin up to the token before.
        const auto window = *std::find_if(windows.begin(), windows.end(), [&](const TextWindow& w) {
          return index >= w.scored && index < w.end;
        });
        const auto alone = make_reference_executor(model.decoder(),
                                                   {.max_rows = 12, .pages = 1, .max_context = 64});
        const auto rows = static_cast<std::uint32_t>(index - window.begin);
        const std::vector<PageId> pages{0};
        const SequenceSlice slice{rows, 0, pages};
        const std::vector<std::uint32_t> last{rows - 1};
        std::vector<float> expected(vocab);
        alone->forward({std::span(tokens).subspan(window.begin, rows), {&slice, 1}, last},
                       expected);
        EXPECT_TRUE(std::equal(logits.begin(), logits.end(), expected.begin()));
      });
  EXPECT_EQ(next, tokens.size());
}

}  // namespace
}  // namespace edgerunner::test
