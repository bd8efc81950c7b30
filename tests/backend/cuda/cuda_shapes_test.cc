#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "arch/shape.h"
#include "backend/cuda/cuda_executor.h"
#include "support/model_fixture.h"

// Real head sizes and widths, with random weights made on the device: the fast kernels against the
// exact ones.

namespace edgerunner::test {
namespace {

class CudaShapes : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_available()) GTEST_SKIP() << "no GPU";
  }

  static std::unique_ptr<Executor> make(const Decoder& decoder, Precision precision) {
    return cuda::make_executor(decoder,
                               {.precision = precision,
                                .kv = KvPrecision::f16,
                                .max_rows = 512,
                                .max_logit_rows = 2,
                                .pages = 32,
                                .max_context = 2048},
                               cuda::WeightSource::random);
  }

  static std::vector<TokenId> prompt(std::uint32_t length) {
    std::vector<TokenId> tokens(length);
    for (std::uint32_t i = 0; i < length; ++i) {
      tokens[i] = static_cast<TokenId>((i * 7919 + 13) % 30000);
    }
    return tokens;
  }

  // The logits of the last of `tokens`, fed in chunks of at most 512 rows but for the last
  // `decoded`, which are fed one by one. Pages lie backwards.
  static std::vector<float> last_logits(Executor& executor, std::span<const TokenId> tokens,
                                        std::uint32_t decoded, std::uint32_t vocab) {
    std::vector<PageId> pages;
    for (PageId page = 32; page > 0; --page) pages.push_back(page - 1);
    std::vector<float> logits(vocab);
    std::uint32_t at = 0;
    const auto total = static_cast<std::uint32_t>(tokens.size());
    while (at < total) {
      const std::uint32_t rows = at < total - decoded ? std::min(512U, total - decoded - at) : 1U;
      const SequenceSlice slice{rows, at, pages};
      const std::uint32_t wanted = rows - 1;
      executor.forward({tokens.subspan(at, rows), {&slice, 1}, {&wanted, 1}}, logits);
      at += rows;
    }
    return logits;
  }

  static double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
    double difference = 0;
    double norm = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
      norm += std::pow(static_cast<double>(b[i]), 2);
    }
    return std::sqrt(difference / norm);
  }
};

// An 8-bit activation has an error of about 0.5 % of its block's spread; some two hundred products
// in sequence, whose errors are independent, add up to a few per cent of the logits' norm.
TEST_F(CudaShapes, FastDecodingIsNearExact) {
  for (const auto& [name, type] :
       {std::pair{"smollm2-135m", ElementType::q8_0}, std::pair{"smollm2-135m", ElementType::q4_1},
        std::pair{"qwen3-0.6b", ElementType::q4_k}, std::pair{"qwen3-0.6b", ElementType::q6_k},
        std::pair{"llama32-1b", ElementType::q8_0}}) {
    const Decoder decoder = shape_decoder(name, type);
    const std::uint32_t vocab = decoder.spec.vocab_size;
    const auto exact = make(decoder, Precision::exact);
    const auto fast = make(decoder, Precision::fast);
    for (const std::uint32_t length : {1U, 2U, 17U, 40U, 333U, 1100U}) {
      const auto tokens = prompt(length);
      const auto expected = last_logits(*exact, tokens, 0, vocab);
      const std::uint32_t decoded = std::min(length, 3U);
      const double error = relative_error(last_logits(*fast, tokens, decoded, vocab), expected);
      const double prefill = relative_error(last_logits(*fast, tokens, 0, vocab), expected);
      fmt::print("{} {} {} tokens: decode {:.3f}, prefill {:.4f}\n", name, traits(type).name,
                 length, error, prefill);
      EXPECT_LT(error, 0.08) << name << " at " << length;
      EXPECT_LT(prefill, 0.08) << name << " at " << length;
    }
  }
}

// Few rows of a batch, in several sequences, whatever their number: a matrix product's sums are cut
// by the matrix alone. Beyond 64 rows attention goes through them in larger tiles.
TEST_F(CudaShapes, FewRowsInFastGiveTheBitsOfEachSequenceAlone) {
  struct Case {
    std::uint32_t rows;
    std::vector<std::uint32_t> others;
  };
  for (const ElementType type :
       {ElementType::q8_0, ElementType::q4_0, ElementType::q4_1, ElementType::q4_k}) {
    // 576 columns of smollm2 are no multiple of what a block takes at once.
    const bool blocks_of_256 = type == ElementType::q4_k;
    const Decoder decoder = shape_decoder(blocks_of_256 ? "qwen3-0.6b" : "smollm2-135m", type);
    const std::uint32_t vocab = decoder.spec.vocab_size;
    const auto executor = make(decoder, Precision::fast);
    const auto tokens = prompt(256);
    std::vector<PageId> pages(16);
    for (PageId page = 0; page < 16; ++page) pages[page] = 15 - page;
    const auto own_pages = [&](std::size_t i) { return std::span(pages).subspan(4 * i, 4); };
    for (const Case& c : {Case{2, {3, 20, 51}}, Case{5, {3, 20, 51}}, Case{13, {3, 20, 51}},
                          Case{70, {1, 40, 100, 186}}, Case{129, {1, 100}}}) {
      std::vector<float> alone(vocab);
      const SequenceSlice first{c.rows, 0, own_pages(0)};
      const std::uint32_t last = c.rows - 1;
      executor->forward({std::span(tokens).first(c.rows), {&first, 1}, {&last, 1}}, alone);
      for (const std::uint32_t others : c.others) {
        std::vector<float> logits(2 * std::size_t{vocab});
        const std::vector<SequenceSlice> both = {{c.rows, 0, own_pages(1)},
                                                 {others, 0, own_pages(2)}};
        const std::vector<std::uint32_t> wanted = {c.rows - 1, c.rows + others - 1};
        executor->forward({std::span(tokens).first(c.rows + others), both, wanted}, logits);
        EXPECT_EQ(std::vector<float>(logits.begin(), logits.begin() + vocab), alone)
            << traits(type).name << ": " << c.rows << " rows beside " << others;
      }
    }
  }
}

TEST_F(CudaShapes, FastDecodingRepeatsItsBits) {
  const Decoder decoder = shape_decoder("smollm2-135m", ElementType::q8_0);
  const auto executor = make(decoder, Precision::fast);
  const auto tokens = prompt(400);
  const auto first = last_logits(*executor, tokens, 200, decoder.spec.vocab_size);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(last_logits(*executor, tokens, 200, decoder.spec.vocab_size), first);
  }
}

}  // namespace
}  // namespace edgerunner::test
