#include <gtest/gtest.h>

#include <vector>

#include "backend/cpu/sequences.h"
#include "backend/executor.h"
#include "support/random_decoder.h"

// Which differences in how a sequence is fed leave the bits as they are in `fast`. In `exact` all
// of them do (cuda_fixtures_test.cc).

namespace edgerunner::test {
namespace {

constexpr std::uint32_t kVocab = 700;

class CudaFastBits : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_available()) GTEST_SKIP() << "no GPU";
    executor_ = make_cuda_executor(model_.decoder(), {.precision = Precision::fast,
                                                      .kv = KvPrecision::f16,
                                                      .max_rows = 1408,
                                                      .max_logit_rows = 1408,
                                                      .pages = 64,
                                                      .max_context = 1408});
  }

  // The logits of three sequences after a prompt of `prompt` tokens each (the batches are the same
  // whatever is compared) and then as many batches of a token of each of the first `sequences`.
  std::vector<LogitRows> decode(std::uint32_t sequences, std::uint32_t prompt) {
    std::vector<Sequence> all;
    for (std::uint32_t i = 0; i < 6; ++i) {
      all.push_back({model_.tokens(prompt + 20, i), page_range(10 * i, 10), 0, {}});
      step(*executor_, kVocab, {&all.back(), 1}, {&prompt, 1});
    }
    const std::vector<std::uint32_t> ones(sequences, 1);
    for (int i = 0; i < 20; ++i) step(*executor_, kVocab, std::span(all).first(sequences), ones);
    std::vector<LogitRows> logits;
    logits.reserve(all.size());
    for (const Sequence& s : all) logits.push_back(s.logits);
    return logits;
  }

  RandomDecoder model_{{.layers = 3,
                        .heads = 8,
                        .kv_heads = 2,
                        .head_dim = 64,
                        .dim = 256,
                        .ffn_dim = 512,
                        .vocab = kVocab,
                        .type = ElementType::q8_0}};
  std::unique_ptr<Executor> executor_;
};

// Both in batches of more than one row: 3 sequences, or 6.
TEST_F(CudaFastBits, DontDependOnHowManyDecodeTogetherBeyondOne) {
  const auto three = decode(3, 100);
  const auto six = decode(6, 100);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(three[i], six[i]) << "sequence " << i;
}

TEST_F(CudaFastBits, DontDependOnOtherPromptsInAChunk) {
  std::vector<Sequence> alone = {{model_.tokens(150, 1), page_range(0, 4), 0, {}}};
  std::vector<Sequence> together = {{model_.tokens(90, 2), page_range(10, 4), 0, {}},
                                    {model_.tokens(150, 1), page_range(20, 4), 0, {}}};
  const std::uint32_t whole[] = {90, 150};
  step(*executor_, kVocab, alone, std::span(whole).last(1));
  step(*executor_, kVocab, together, whole);
  EXPECT_EQ(alone[0].logits, together[1].logits);
}

// In pieces that the same kernels take: of 65 to 640 rows, or of more.
TEST_F(CudaFastBits, DontDependOnWhereALargePromptIsCut) {
  const auto expect_same = [&](std::uint32_t length, std::uint32_t piece) {
    const auto tokens = model_.tokens(length, 3);
    const LogitRows whole = run(*executor_, kVocab, tokens, length, page_range(0, 22));
    EXPECT_EQ(run(*executor_, kVocab, tokens, piece, page_range(22, 22)), whole)
        << length << " tokens in pieces of " << piece;
  };
  expect_same(240, 120);
  expect_same(240, 80);
  expect_same(600, 300);
  expect_same(1400, 700);
}

TEST_F(CudaFastBits, OfOneRowDontDependOnTheSequenceBefore) {
  const auto tokens = model_.tokens(100, 3);
  const LogitRows first = run(*executor_, kVocab, tokens, 1, page_range(0, 8));
  run(*executor_, kVocab, model_.tokens(333, 8), 1, page_range(8, 8));
  EXPECT_EQ(run(*executor_, kVocab, tokens, 1, page_range(40, 8)), first);
}

}  // namespace
}  // namespace edgerunner::test
