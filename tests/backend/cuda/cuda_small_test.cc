#include <gtest/gtest.h>

#include <vector>

#include "backend/cpu/sequences.h"
#include "backend/token_chooser.h"
#include "support/random_decoder.h"

// Every kernel once on a model so small that a checker of memory accesses and races gets through
// (scripts/gpu_check.sh).

namespace edgerunner::test {
namespace {

class CudaSmall : public testing::TestWithParam<std::pair<Precision, KvPrecision>> {
 protected:
  void SetUp() override {
    if (!cuda_available()) GTEST_SKIP() << "no GPU";
  }
};

TEST_P(CudaSmall, RunsEveryPath) {
  const RandomDecoder model({.layers = 2,
                             .heads = 4,
                             .kv_heads = 2,
                             .head_dim = 64,
                             .dim = 160,
                             .ffn_dim = 160,
                             .vocab = 200,
                             .type = ElementType::q8_0});
  const auto [precision, kv] = GetParam();
  const auto executor = make_cuda_executor(model.decoder(), {.precision = precision,
                                                             .kv = kv,
                                                             .max_rows = 80,
                                                             .max_logit_rows = 80,
                                                             .pages = 8,
                                                             .max_context = 256});
  const auto tokens = model.tokens(70, 1);
  std::vector<Sequence> sequences = {{tokens, page_range(0, 4), 0, {}},
                                     {tokens, page_range(4, 4), 0, {}}};
  for (const std::vector<std::uint32_t>& counts :
       {std::vector{65U, 0U}, {1U, 3U}, {1U, 1U}, {1U, 0U}, {1U, 0U}}) {
    step(*executor, 200, sequences, counts);
  }
  executor->copy_page(0, 7, 64);
  SamplingOptions sampling;
  sampling.temperature = 0.9F;
  sampling.top_p = 0.9F;
  sampling.presence_penalty = 0.5F;
  sampling.logit_bias = {{3, 1.0F}};
  const SequenceSlice slice{1, 69, sequences[0].pages};
  const std::uint32_t first = 0;
  const TokenChoice choice{&sampling, tokens, 70};
  std::vector<TokenId> chosen(3);
  executor->chooser()->choose({std::span(tokens).last(1), {&slice, 1}, {&first, 1}}, {&choice, 1},
                              3, chosen);
  for (const TokenId token : chosen) EXPECT_NE(token, kNoToken);

  // Of two rows: launched, captured and replayed.
  const std::vector<SequenceSlice> both = {{1, 69, sequences[0].pages},
                                           {1, 68, sequences[1].pages}};
  const std::vector<std::uint32_t> wanted = {0, 1};
  const std::vector<TokenChoice> choices(2, choice);
  chosen.resize(6);
  executor->chooser()->choose({std::span(tokens).last(2), both, wanted}, choices, 3, chosen);
  for (const TokenId token : chosen) EXPECT_NE(token, kNoToken);
}

INSTANTIATE_TEST_SUITE_P(Settings, CudaSmall,
                         testing::Values(std::pair(Precision::exact, KvPrecision::f32),
                                         std::pair(Precision::fast, KvPrecision::f16),
                                         std::pair(Precision::fast, KvPrecision::q8)));

}  // namespace
}  // namespace edgerunner::test
