#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "backend/cpu/sequences.h"
#include "backend/executor.h"
#include "support/random_decoder.h"

// Whole forward passes of small random models against the reference backend: shapes that no tile
// divides, every head size, large magnitudes, page tables in disorder, long sequences in turn.

namespace edgerunner::test {
namespace {

constexpr std::uint32_t kPages = 48;

struct Setting {
  Precision precision;
  KvPrecision kv;
  double bound;  // of f32 sums; f16 cache; e4m3 cache; 8-bit or f16 activations
};
constexpr Setting kSettings[] = {
    {Precision::exact, KvPrecision::f32, 5e-6}, {Precision::exact, KvPrecision::f16, 2e-3},
    {Precision::exact, KvPrecision::q8, 0.15},  {Precision::fast, KvPrecision::f16, 0.08},
    {Precision::fast, KvPrecision::f32, 0.08},  {Precision::fast, KvPrecision::q8, 0.2},
};

class CudaModels : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_available()) GTEST_SKIP() << "no GPU";
  }

  static std::unique_ptr<Executor> make(const Decoder& decoder, Precision precision,
                                        KvPrecision kv) {
    return make_cuda_executor(decoder, {.precision = precision,
                                        .kv = kv,
                                        .max_rows = 512,
                                        .max_logit_rows = 512,
                                        .pages = kPages,
                                        .max_context = 2048});
  }

  static LogitRows expected(const Decoder& decoder, std::span<const TokenId> tokens) {
    const auto reference = make_reference_executor(
        decoder, {.max_rows = 512, .max_logit_rows = 512, .pages = kPages, .max_context = 2048});
    return run(*reference, decoder.spec.vocab_size, tokens, 512, page_range(0, kPages));
  }

  // The largest difference of a row, as a fraction of its norm.
  static double largest_error(const LogitRows& rows, const LogitRows& expected) {
    double largest = 0;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      double difference = 0;
      double norm = 0;
      for (std::size_t i = 0; i < rows[row].size(); ++i) {
        const auto right = static_cast<double>(expected[row][i]);
        difference += std::pow(static_cast<double>(rows[row][i]) - right, 2);
        norm += right * right;
      }
      const double error = std::sqrt(difference / norm);
      largest = std::isfinite(error) ? std::max(largest, error) : INFINITY;
    }
    return largest;
  }

  static std::vector<PageId> backwards(std::uint32_t count) {
    std::vector<PageId> pages = page_range(0, count);
    std::reverse(pages.begin(), pages.end());
    return pages;
  }

  // In exact and in fast, in chunks of one row, of few and of all.
  void expect_agreement(const RandomDecoder& model, const std::vector<TokenId>& tokens,
                        std::string_view what) {
    const LogitRows right = expected(model.decoder(), tokens);
    for (const Setting& s : {kSettings[0], kSettings[3]}) {
      const auto executor = make(model.decoder(), s.precision, s.kv);
      for (const std::uint32_t chunk : {1U, 5U, static_cast<std::uint32_t>(tokens.size())}) {
        const double error = largest_error(
            run(*executor, model.decoder().spec.vocab_size, tokens, chunk, backwards(kPages)),
            right);
        EXPECT_LE(error, s.bound) << what << " chunk " << chunk;
      }
    }
  }
};

TEST_F(CudaModels, OfEveryHeadSizeAgreeWithTheReference) {
  for (const std::uint32_t head_dim : {64U, 80U, 96U, 128U, 256U}) {
    const RandomDecoder model(
        {.layers = 3,
         .heads = 6,
         .kv_heads = 2,
         .head_dim = head_dim,
         .dim = 160,
         .ffn_dim = 416,
         .vocab = 1003,
         .type = ElementType::q8_0,
         .biases = head_dim == 80,
         .head_norms = head_dim == 96,
         .rope = head_dim == 128 ? RopeLayout::half_split : RopeLayout::interleaved},
        head_dim);
    const auto tokens = model.tokens(150, head_dim);
    const LogitRows right = expected(model.decoder(), tokens);
    for (const Setting& s : kSettings) {
      const auto executor = make(model.decoder(), s.precision, s.kv);
      for (const std::uint32_t chunk : {1U, 3U, 11U, 150U}) {
        const double error = largest_error(
            run(*executor, model.decoder().spec.vocab_size, tokens, chunk, backwards(kPages)),
            right);
        fmt::print("head_dim {:3} {} {} in chunks of {}: {:.1e}\n", head_dim,
                   s.precision == Precision::exact ? "exact" : "fast", name(s.kv), chunk, error);
        EXPECT_LE(error, s.bound) << "head_dim " << head_dim << " chunk " << chunk;
      }
    }
  }
}

TEST_F(CudaModels, OfEveryElementTypeAgreeWithTheReference) {
  for (const ElementType type :
       {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::q4_0, ElementType::q4_1,
        ElementType::q5_0, ElementType::q5_1, ElementType::q8_0}) {
    const RandomDecoder model({.heads = 7,
                               .kv_heads = 7,
                               .head_dim = 32,
                               .dim = 224,
                               .ffn_dim = 352,
                               .vocab = 517,
                               .window = 50,
                               .type = type},
                              7);
    const auto tokens = model.tokens(140, 3);
    expect_agreement(model, tokens, traits(type).name);
  }
}

// Rows of a whole segment of each type and a rest, two at a time and alone (segment.h).
TEST_F(CudaModels, OfEveryKQuantAgreeWithTheReference) {
  for (const ElementType type : {ElementType::q2_k, ElementType::q3_k, ElementType::q4_k,
                                 ElementType::q5_k, ElementType::q6_k}) {
    const RandomDecoder model({.layers = 1,
                               .heads = 4,
                               .kv_heads = 2,
                               .head_dim = 64,
                               .dim = 4352,
                               .ffn_dim = 256,
                               .vocab = 261,
                               .type = type},
                              11);
    const auto tokens = model.tokens(14, 5);
    expect_agreement(model, tokens, traits(type).name);
  }
}

// Values of 4e4 in the cache, where queries and keys are normalised, and of 6e4 between the
// feed-forward's matrices: f16 holds 65,504.
TEST_F(CudaModels, OfLargeMagnitudesAgreeWithTheReference) {
  const RandomDecoder model({.heads = 4,
                             .kv_heads = 2,
                             .head_dim = 64,
                             .dim = 256,
                             .ffn_dim = 512,
                             .vocab = 800,
                             .type = ElementType::q8_0,
                             .head_norms = true});
  Decoder large = model.decoder();
  for (LayerWeights& layer : large.weights.layers) {
    for (float& x : layer.attention.norm) x *= 1e4F;
    for (float& x : layer.feed_forward.norm) x *= 60.0F;
  }
  const auto tokens = model.tokens(130, 5);
  const LogitRows right = expected(large, tokens);
  for (const Setting& s : kSettings) {
    const auto executor = make(large, s.precision, s.kv);
    for (const std::uint32_t chunk : {1U, 9U, 130U}) {
      const double error =
          largest_error(run(*executor, 800, tokens, chunk, page_range(0, kPages)), right);
      fmt::print("large, {} {} in chunks of {}: {:.1e}\n",
                 s.precision == Precision::exact ? "exact" : "fast", name(s.kv), chunk, error);
      EXPECT_LE(error, s.bound) << "chunk " << chunk;
    }
  }
}

// Two sequences in turn through the kernel that decodes one row, against the plain kernels.
TEST_F(CudaModels, DecodeTwoThousandTokensAcrossPagesAndSequencesAsPlainKernelsDo) {
  const RandomDecoder model({.layers = 3,
                             .heads = 8,
                             .kv_heads = 2,
                             .head_dim = 64,
                             .dim = 256,
                             .ffn_dim = 512,
                             .vocab = 500,
                             .type = ElementType::q8_0});
  const std::uint32_t vocab = 500;
  std::vector<Sequence> sequences = {
      {model.tokens(1400, 1), backwards(24), 0, {}},
      {model.tokens(650, 2), page_range(30, 12), 0, {}},
  };
  const auto plain = make(model.decoder(), Precision::exact, KvPrecision::f16);
  const auto fast = make(model.decoder(), Precision::fast, KvPrecision::f16);
  std::vector<LogitRows> right;
  for (const Sequence& s : sequences) right.push_back(run(*plain, vocab, s.tokens, 512, s.pages));
  std::uint32_t turn = 0;
  while (sequences[0].done < 1400 || sequences[1].done < 650) {
    const std::size_t which = turn++ % 2;
    Sequence& s = sequences[which];
    for (std::uint32_t i = 0; i < 37 + 5 * which && s.done < s.tokens.size(); ++i) {
      const std::uint32_t one = 1;
      step(*fast, vocab, {&s, 1}, {&one, 1});
    }
  }
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const double error = largest_error(sequences[i].logits, right[i]);
    fmt::print("sequence {}: {:.1e}\n", i, error);
    EXPECT_LE(error, 0.08);
  }
}

// Mean Kullback-Leibler divergence of fast from exact, in nats a token.
TEST_F(CudaModels, FastDivergesLittleFromExact) {
  const RandomDecoder model({.layers = 6,
                             .heads = 8,
                             .kv_heads = 2,
                             .head_dim = 64,
                             .dim = 512,
                             .ffn_dim = 1024,
                             .vocab = 2000,
                             .type = ElementType::q8_0});
  const auto tokens = model.tokens(200, 9);
  const auto exact = make(model.decoder(), Precision::exact, KvPrecision::f32);
  const LogitRows right = run(*exact, 2000, tokens, 200, page_range(0, kPages));
  for (const auto& [kv, bound] :
       {std::pair{KvPrecision::f16, 1e-3}, std::pair{KvPrecision::q8, 2e-3}}) {
    const auto fast = make(model.decoder(), Precision::fast, kv);
    for (const std::uint32_t chunk : {1U, 4U, 200U}) {
      const LogitRows rows = run(*fast, 2000, tokens, chunk, page_range(0, kPages));
      double sum = 0;
      for (std::size_t row = 0; row < rows.size(); ++row) {
        const auto log_total = [](const std::vector<float>& x) {
          double total = 0;
          for (const float v : x) total += std::exp(static_cast<double>(v));
          return std::log(total);
        };
        const double p_total = log_total(right[row]);
        const double q_total = log_total(rows[row]);
        for (std::size_t i = 0; i < rows[row].size(); ++i) {
          const double p = static_cast<double>(right[row][i]) - p_total;
          sum += std::exp(p) * (p - (static_cast<double>(rows[row][i]) - q_total));
        }
      }
      const double divergence = sum / static_cast<double>(rows.size());
      fmt::print("fast {} in chunks of {}: divergence {:.1e}\n", name(kv), chunk, divergence);
      EXPECT_LE(divergence, bound) << name(kv) << " chunk " << chunk;
    }
  }
}

TEST_F(CudaModels, ExactGreedyTextIsTheCpus) {
  const RandomDecoder model({.layers = 4,
                             .heads = 8,
                             .kv_heads = 2,
                             .head_dim = 64,
                             .dim = 256,
                             .ffn_dim = 512,
                             .vocab = 3000,
                             .type = ElementType::q4_0});
  const auto continue_on = [&](Executor& executor) {
    std::vector<TokenId> tokens = model.tokens(20, 4);
    std::vector<float> logits(3000);
    const std::vector<PageId> pages = page_range(0, kPages);
    std::uint32_t done = 0;
    while (tokens.size() < 320) {
      const auto rows = static_cast<std::uint32_t>(tokens.size()) - done;
      const SequenceSlice slice{rows, done, pages};
      const std::uint32_t last = rows - 1;
      executor.forward({std::span(tokens).last(rows), {&slice, 1}, {&last, 1}}, logits);
      done += rows;
      tokens.push_back(
          static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    }
    return tokens;
  };
  const auto cpu = make_cpu_executor(model.decoder(), {.precision = Precision::exact,
                                                       .kv = KvPrecision::f32,
                                                       .max_rows = 512,
                                                       .max_logit_rows = 1,
                                                       .pages = kPages,
                                                       .max_context = 2048});
  const auto cuda = make(model.decoder(), Precision::exact, KvPrecision::f32);
  EXPECT_EQ(continue_on(*cuda), continue_on(*cpu));
}

}  // namespace
}  // namespace edgerunner::test
