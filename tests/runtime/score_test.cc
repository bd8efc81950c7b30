#include "runtime/score.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "edgerunner/error.h"

namespace edgerunner {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

constexpr std::uint32_t kVocab = 3;

// Notes what it is asked for; a row's logits are its position, its token and the batch's number.
class RecordingExecutor final : public Executor {
 public:
  explicit RecordingExecutor(const ExecutorOptions& options) : options_(options) {}

  void forward(const Batch& batch, std::span<float> logits) override {
    const SequenceSlice& slice = batch.sequences.front();
    batches.emplace_back(slice.start, slice.rows);
    for (std::size_t i = 0; i < batch.logit_rows.size(); ++i) {
      const std::uint32_t row = batch.logit_rows[i];
      logits[i * kVocab] = static_cast<float>(slice.start + row);
      logits[i * kVocab + 1] = static_cast<float>(batch.tokens[row]);
      logits[i * kVocab + 2] = static_cast<float>(batches.size());
    }
  }
  void copy_page(PageId, PageId, std::uint32_t) override {}
  const ExecutorInfo& info() const override { return info_; }
  const ExecutorOptions& options() const override { return options_; }

  std::vector<std::pair<std::uint32_t, std::uint32_t>> batches;  // start and rows

 private:
  ExecutorOptions options_;
  ExecutorInfo info_;
};

struct Visit {
  std::uint32_t position;
  std::vector<float> logits;
};

std::vector<Visit> visits(RecordingExecutor& executor, std::size_t tokens,
                          const std::vector<std::uint32_t>& positions) {
  std::vector<TokenId> ids(tokens);
  for (std::size_t i = 0; i < tokens; ++i) ids[i] = static_cast<TokenId>(100 + i);
  std::vector<Visit> result;
  score(executor, kVocab, ids, positions,
        [&](std::uint32_t position, std::span<const float> logits) {
          result.push_back({position, {logits.begin(), logits.end()}});
        });
  return result;
}

TEST(Score, CutsALongSequenceIntoBatches) {
  RecordingExecutor executor({.max_rows = 4, .max_logit_rows = 2, .pages = 1});
  const auto result = visits(executor, 10, {0, 9});
  EXPECT_THAT(executor.batches, ElementsAre(Pair(0, 4), Pair(4, 4), Pair(8, 2)));
  ASSERT_EQ(result.size(), 2);
  EXPECT_THAT(result[0].logits, ElementsAre(0, 100, 1));
  EXPECT_THAT(result[1].logits, ElementsAre(9, 109, 3));
}

TEST(Score, EndsABatchWhereTheRoomForLogitsEnds) {
  RecordingExecutor executor({.max_rows = 8, .max_logit_rows = 2, .pages = 1});
  const auto result = visits(executor, 6, {0, 1, 2, 3, 5});
  EXPECT_THAT(executor.batches, ElementsAre(Pair(0, 2), Pair(2, 2), Pair(4, 2)));
  ASSERT_EQ(result.size(), 5);
  for (const Visit& visit : result) {
    EXPECT_EQ(visit.logits[0], visit.position);
    EXPECT_EQ(visit.logits[1], 100 + visit.position);
  }
}

TEST(Score, DoesNotComputeWhatFollowsTheLastPosition) {
  RecordingExecutor executor({.max_rows = 8, .max_logit_rows = 2, .pages = 1});
  visits(executor, 8, {2});
  EXPECT_THAT(executor.batches, ElementsAre(Pair(0, 3)));
}

TEST(Score, RefusesPositionsThatAreNotThere) {
  RecordingExecutor executor({.max_rows = 8, .max_logit_rows = 2, .pages = 1});
  EXPECT_THROW(visits(executor, 4, {4}), Error);
  EXPECT_THROW(visits(executor, 4, {2, 1}), Error);
  EXPECT_THROW(visits(executor, 4, {2, 2}), Error);
  EXPECT_THROW(visits(executor, kPageTokens + 1, {0}), Error);
  EXPECT_TRUE(executor.batches.empty());
}

}  // namespace
}  // namespace edgerunner
