#include "runtime/score.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "edgerunner/error.h"

namespace edgerunner {
namespace {

void check(const Executor& executor, std::span<const TokenId> tokens,
           std::span<const std::uint32_t> positions) {
  const std::uint64_t room = std::uint64_t{executor.options().pages} * kPageTokens;
  if (tokens.size() > room) {
    throw Error(ErrorCode::context_full,
                fmt::format("the sequence has {} tokens, but the cache has room for {}",
                            tokens.size(), room));
  }
  for (std::size_t i = 0; i < positions.size(); ++i) {
    if (positions[i] >= tokens.size()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("position {} is past the end of a sequence of {} tokens",
                              positions[i], tokens.size()));
    }
    if (i > 0 && positions[i] <= positions[i - 1]) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("positions must ascend, but {} follows {}", positions[i], positions[i - 1]));
    }
  }
}

}  // namespace

void score(Executor& executor, std::uint32_t vocab_size, std::span<const TokenId> tokens,
           std::span<const std::uint32_t> positions, const ScoreVisitor& visit,
           const AdapterSet* adapters) {
  check(executor, tokens, positions);
  std::vector<PageId> pages(pages_for(tokens.size()));
  std::iota(pages.begin(), pages.end(), PageId{0});

  const ExecutorOptions& limits = executor.options();
  std::vector<float> logits(std::min<std::size_t>(limits.max_logit_rows, positions.size()) *
                            vocab_size);
  std::vector<std::uint32_t> rows;
  std::size_t begin = 0;
  // What follows the last position of interest need not be computed.
  const std::size_t end = positions.empty() ? 0 : positions.back() + std::size_t{1};
  while (begin < end) {
    std::size_t count = std::min<std::size_t>(limits.max_rows, end - begin);
    rows.clear();
    for (const std::uint32_t position : positions) {
      if (position >= begin + count) break;
      if (rows.size() == limits.max_logit_rows) {  // the rest goes into a batch of its own
        count = rows.back() + std::size_t{1};
        break;
      }
      rows.push_back(static_cast<std::uint32_t>(position - begin));
    }
    const SequenceSlice slice{.rows = static_cast<std::uint32_t>(count),
                              .start = static_cast<std::uint32_t>(begin),
                              .pages = pages,
                              .adapters = adapters};
    const std::span<float> out = std::span(logits).first(rows.size() * vocab_size);
    executor.forward(
        {.tokens = tokens.subspan(begin, count), .sequences = {&slice, 1}, .logit_rows = rows},
        out);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      visit(positions[i], out.subspan(i * vocab_size, vocab_size));
    }
    positions = positions.subspan(rows.size());
    begin += count;
  }
}

}  // namespace edgerunner
