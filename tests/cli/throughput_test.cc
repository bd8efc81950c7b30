#include "cli/throughput.h"

#include <gmock/gmock.h>

#include <numeric>

#include "support/scripted_executor.h"

namespace edgerunner::test {
namespace {

constexpr std::uint32_t kVocab = 50;

ScriptedExecutor executor() {
  return {kVocab,
          [](std::span<const TokenId> seen) { return (seen.back() + 1) % TokenId{kVocab}; }};
}

TEST(ThroughputMeter, DecodesAStepAPassWhereTheCallerChooses) {
  ScriptedExecutor script = executor();
  cli::ThroughputMeter meter(script, kVocab, 1);
  const cli::Throughput result = meter.decode(7, 3, 1);
  EXPECT_EQ(result.tokens, 7);
  EXPECT_GT(result.tps, 0);
  EXPECT_TRUE(script.bursts.empty());
}

TEST(ThroughputMeter, DecodesInBurstsWhereTheBackendChooses) {
  ScriptedExecutor script = executor();
  script.choose_tokens();
  cli::ThroughputMeter meter(script, kVocab, 1);
  meter.decode(12, 3, 2);
  // Warmed up once and measured once, 12 steps each.
  EXPECT_EQ(std::accumulate(script.bursts.begin(), script.bursts.end(), 0U), 24);
  EXPECT_THAT(script.bursts, testing::Contains(testing::Gt(1)));
}

}  // namespace
}  // namespace edgerunner::test
