#include "runtime/kv_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "support/scripted_executor.h"

namespace edgerunner {
namespace {

using test::ScriptedExecutor;

std::vector<TokenId> numbers(TokenId first, std::size_t count) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

std::vector<TokenId> operator+(std::vector<TokenId> a, const std::vector<TokenId>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// A cache over an executor that checks what the pages hold.
class KvCacheTest : public ::testing::Test {
 protected:
  void make(std::uint32_t pages, std::uint32_t window = 0) {
    ExecutorOptions options = test::scripted_options();
    options.pages = pages;
    options.max_context = 100000;
    options.max_rows = 100000;
    executor.emplace(
        10000,
        [this](std::span<const TokenId> seen) {
          last_seen.assign(seen.begin(), seen.end());
          return TokenId{0};
        },
        options, window);
    cache.emplace(*executor, window);
  }

  // Computes what the sequence lacks of `tokens`; false if pages ran out.
  bool compute(KvCache::Sequence& sequence, const std::vector<TokenId>& tokens) {
    const auto rest = std::span(tokens).subspan(sequence.length());
    const auto rows = static_cast<std::uint32_t>(rest.size());
    if (!cache->reserve(sequence, rows)) return false;
    const SequenceSlice slice{rows, sequence.length(), sequence.pages()};
    const std::uint32_t last = rows - 1;
    std::vector<float> logits(10000);
    executor->forward({rest, std::span(&slice, 1), std::span(&last, 1)}, logits);
    cache->commit(sequence, rest);
    return true;
  }

  // Acquires, computes, checks that the pages hold `tokens`, releases. Returns how many were found.
  std::uint32_t run(const std::vector<TokenId>& tokens) {
    KvCache::Sequence sequence;
    const std::uint32_t found = cache->acquire(sequence, tokens);
    EXPECT_TRUE(compute(sequence, tokens));
    EXPECT_EQ(last_seen, tokens);
    cache->release(sequence);
    return found;
  }

  std::vector<TokenId> last_seen;
  std::optional<ScriptedExecutor> executor;
  std::optional<KvCache> cache;
};

TEST_F(KvCacheTest, FindsNothingAtFirstAndAllButTheLastTokenLater) {
  make(16);
  const auto tokens = numbers(0, 200);
  EXPECT_EQ(run(tokens), 0U);
  EXPECT_EQ(run(tokens), 199U);
}

TEST_F(KvCacheTest, LeavesTheLastTokenToComputeAtAPageBorder) {
  make(16);
  for (const std::size_t count : {1U, 2U, 63U, 64U, 65U, 128U, 129U}) {
    cache->forget_unused();
    EXPECT_EQ(run(numbers(0, count)), 0U);
    EXPECT_EQ(run(numbers(0, count)), count - 1);
  }
}

TEST_F(KvCacheTest, SharesAPrefixToTheToken) {
  make(32);
  const auto first = numbers(0, 150);
  run(first);
  for (const std::size_t shared : {149U, 130U, 128U, 127U, 64U, 63U, 1U}) {
    const auto second = numbers(0, shared) + numbers(5000, 100);
    EXPECT_EQ(run(second), shared) << shared;
    EXPECT_EQ(run(first), 149U) << "the first must be left as it was, " << shared;
  }
}

TEST_F(KvCacheTest, SharesFullPagesOfARunningSequenceAndCopiesItsPartialOne) {
  make(16);
  KvCache::Sequence first;
  cache->acquire(first, numbers(0, 100));
  compute(first, numbers(0, 100));
  KvCache::Sequence second;
  EXPECT_EQ(cache->acquire(second, numbers(0, 90) + numbers(7000, 10)), 90U);
  EXPECT_EQ(second.pages()[0], first.pages()[0]);
  EXPECT_NE(second.pages()[1], first.pages()[1]);
  EXPECT_EQ(executor->copies, 1);
  compute(second, numbers(0, 90) + numbers(7000, 200));
  compute(first, numbers(0, 300));
  EXPECT_EQ(last_seen, numbers(0, 300));
  cache->release(first);
  cache->release(second);
}

TEST_F(KvCacheTest, TakesOverAnUnusedPartialPageWithoutACopy) {
  make(16);
  run(numbers(0, 100));
  EXPECT_EQ(run(numbers(0, 101)), 100U);
  EXPECT_EQ(executor->copies, 0);
}

TEST_F(KvCacheTest, HoldsEqualPagesOnce) {
  make(16);
  KvCache::Sequence first;
  KvCache::Sequence second;
  const auto tokens = numbers(0, 128);
  cache->acquire(first, tokens);
  cache->acquire(second, tokens);
  compute(first, tokens);
  compute(second, tokens);
  EXPECT_THAT(second.pages(), ::testing::ElementsAreArray(first.pages()));
  EXPECT_EQ(cache->cached_pages(), 2U);
  cache->release(first);
  cache->release(second);
}

TEST_F(KvCacheTest, EvictsTheLeastRecentlyUsedAndNothingInUse) {
  make(6);
  run(numbers(0, 128));
  run(numbers(1000, 128));
  run(numbers(0, 128));     // used again: 1000.. is the oldest now
  run(numbers(2000, 192));  // needs one page more than is free
  EXPECT_EQ(run(numbers(1000, 128)), 64U) << "the tail goes before the head";
}

TEST_F(KvCacheTest, ReportsThatPagesRanOut) {
  make(4);
  KvCache::Sequence first;
  cache->acquire(first, numbers(0, 192));
  ASSERT_TRUE(compute(first, numbers(0, 192)));
  EXPECT_TRUE(cache->fits({}, numbers(500, 63)));
  EXPECT_FALSE(cache->fits({}, numbers(500, 64)));
  EXPECT_TRUE(cache->fits({}, numbers(0, 191))) << "two pages are shared, the third is new";
  EXPECT_FALSE(cache->fits({}, numbers(0, 256)));
  KvCache::Sequence second;
  cache->acquire(second, numbers(500, 100));
  EXPECT_FALSE(cache->reserve(second, 100));
  cache->release(second);
  cache->release(first);
  EXPECT_EQ(run(numbers(500, 256)), 0U);
}

TEST_F(KvCacheTest, ForgetsWhatNobodyUses) {
  make(8);
  KvCache::Sequence used;
  cache->acquire(used, numbers(0, 70));
  compute(used, numbers(0, 70));
  run(numbers(1000, 70));
  cache->forget_unused();
  EXPECT_EQ(cache->cached_pages(), 2U);
  EXPECT_EQ(run(numbers(1000, 70)), 0U);
  cache->release(used);
  EXPECT_EQ(run(numbers(0, 70)), 69U);
}

TEST_F(KvCacheTest, RecyclesPagesThatTheWindowHasPassed) {
  make(5, 100);
  KvCache::Sequence sequence;
  auto tokens = numbers(0, 1);
  cache->acquire(sequence, tokens);
  while (tokens.size() < 1000) {
    ASSERT_TRUE(compute(sequence, tokens)) << tokens.size();
    const std::size_t seen = std::min<std::size_t>(tokens.size(), 100);
    ASSERT_EQ(last_seen, numbers(static_cast<TokenId>(tokens.size() - seen), seen));
    tokens.push_back(static_cast<TokenId>(tokens.size()));
  }
  EXPECT_EQ(sequence.pages()[0], kNoPage);
  cache->release(sequence);
}

TEST_F(KvCacheTest, DoesNotReuseWhatWasDroppedBehindAWindow) {
  make(5, 100);
  KvCache::Sequence sequence;
  const auto tokens = numbers(0, 640);
  cache->acquire(sequence, tokens);
  for (std::size_t n = 1; n <= 640; ++n) {
    ASSERT_TRUE(compute(sequence, numbers(0, n)));
  }
  cache->release(sequence);
  // The first pages had to make room, so nothing can be reused.
  KvCache::Sequence again;
  EXPECT_EQ(cache->acquire(again, tokens), 0U);
  cache->release(again);
}

TEST_F(KvCacheTest, KeepsEverySequenceRightUnderRandomUse) {
  make(24);
  std::mt19937 random(7);
  struct Live {
    KvCache::Sequence sequence;
    std::vector<TokenId> tokens;
  };
  std::vector<Live> live(4);
  for (int step = 0; step < 4000; ++step) {
    Live& one = live[random() % live.size()];
    if (one.tokens.empty()) {
      // Two tokens and short runs, so that prefixes are often shared.
      const std::size_t count = 1 + random() % 200;
      one.tokens.assign(count, static_cast<TokenId>(random() % 2));
      one.tokens[random() % count] = 2;
      if (!cache->fits({}, one.tokens)) {
        one.tokens.clear();
        continue;
      }
      const std::uint32_t found = cache->acquire(one.sequence, one.tokens);
      ASSERT_LT(found, count);
    } else {
      const std::size_t more = 1 + random() % 80;
      one.tokens.insert(one.tokens.end(), more, static_cast<TokenId>(random() % 2));
    }
    if (compute(one.sequence, one.tokens)) {
      ASSERT_EQ(last_seen, one.tokens) << "step " << step;
      if (one.tokens.size() < 500 && random() % 4 != 0) continue;
    }
    cache->release(one.sequence);
    one.tokens.clear();
  }
  for (Live& one : live) cache->release(one.sequence);
  cache->forget_unused();
  EXPECT_EQ(cache->cached_pages(), 0U);
}

}  // namespace
}  // namespace edgerunner
