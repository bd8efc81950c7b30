// The portable kernels against sums in double over dequantize()'s values, with bounds derived from
// the formats. The vector kernels are held to the portable ones bit for bit elsewhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backend/cpu/kernels/q8_block.h"
#include "base/half.h"
#include "cpu/kernels/random_weights.h"
#include "cpu/kernels/run_product.h"

namespace edgerunner::cpu {
namespace {

using test::Kind;

constexpr double kUlp = 0x1p-24;  // half a unit in the last place of f32, relative

struct Case {
  ElementType type;
  Precision precision;
  Kind kind;
};

// What an output may differ by from sum of w[i] * x[i], and from the same sum over the activations
// as prepared (q8 only; that one tests the kernel's arithmetic rather than the format).
struct Expected {
  double value = 0;
  double bound = 0;
  double value_prepared = 0;
  double bound_prepared = 0;
};

Expected expect(ElementType type, ActivationFormat format, const float* w, const float* x,
                const std::byte* prepared, std::uint32_t cols) {
  Expected e;
  double magnitude = 0;
  for (std::uint32_t i = 0; i < cols; ++i) {
    e.value += double{w[i]} * x[i];
    magnitude += std::abs(double{w[i]} * x[i]);
  }
  const double terms = cols + 2.0;
  switch (format) {
    case ActivationFormat::f32:
      e.bound = terms * kUlp * magnitude;
      break;
    case ActivationFormat::bf16: {
      const double each = type == ElementType::f16 ? 2.01 * 0x1p-8 : 0x1p-8;  // 8 bits
      e.bound = (each + terms * kUlp * 1.01) * magnitude + cols * 1e-37;
      break;
    }
    case ActivationFormat::q8: {
      const auto* blocks = reinterpret_cast<const Q8Block*>(prepared);
      const auto second = test::terms_of(prepared, cols);
      double rounding = 0;
      for (std::uint32_t b = 0; b < cols / 32; ++b) {
        const Q8Block* term = second[b];
        const double step = term != nullptr ? term->scale : blocks[b].scale;
        double largest = 0;
        for (int i = 0; i < 32; ++i) {
          const double weight = w[32 * b + i];
          largest = std::max(largest, std::abs(weight));
          e.value_prepared += weight * blocks[b].scale * blocks[b].q[i];
          if (term != nullptr) e.value_prepared += weight * term->scale * term->q[i];
          e.bound += std::abs(weight) * (step * (0.5 + 0x1p-16) + 32e-37);
        }
        // Scale times code and minimum are each at most twice the block's range of values.
        rounding += 2.0 * 32 * 128 * blocks[b].scale * 2 * (largest + 1e-30);
      }
      e.bound_prepared = (2.0 * cols / 32 + 10) * kUlp * rounding;
      e.bound += e.bound_prepared;
      break;
    }
  }
  return e;
}

class Accuracy : public testing::TestWithParam<ElementType> {};

TEST_P(Accuracy, StaysWithinTheBoundOfTheFormat) {
  constexpr std::uint32_t kRows = 24;
  constexpr std::uint32_t kTokens = 5;
  const std::uint32_t cols = traits(GetParam()).block_length == 256 ? 768 : 576;
  const test::RandomWeights weights(GetParam(), kRows, cols, 7);
  const Matrix matrix = weights.matrix(kRows);
  const Kernels& portable = kernels(Isa::scalar);
  for (const Precision precision : {Precision::fast, Precision::exact}) {
    const ActivationFormat format = activation_format(GetParam(), precision);
    for (const Kind kind : {Kind::normal, Kind::spikes, Kind::rare_spikes, Kind::zeros}) {
      const auto x = test::random_activations(kind, kTokens, cols, 11);
      const test::Prepared prepared(portable, format, x, cols,
                                    kind == Kind::normal ? Refinement::most : Refinement::outliers);
      std::vector<float> out(std::size_t{kTokens} * kRows, -1.0F);
      test::run(portable, {.weights = &matrix,
                           .x = prepared.rows(0, kTokens),
                           .out = out.data(),
                           .out_stride = kRows});
      for (std::uint32_t t = 0; t < kTokens; ++t) {
        for (std::uint32_t r = 0; r < kRows; ++r) {
          const Expected e = expect(GetParam(), format, &weights.values()[std::size_t{r} * cols],
                                    &x[std::size_t{t} * cols], prepared.rows(t, 1).data, cols);
          const double y = out[t * kRows + r];
          ASSERT_LE(std::abs(y - e.value), e.bound) << "row " << r << ", token " << t;
          if (format == ActivationFormat::q8) {
            ASSERT_LE(std::abs(y - e.value_prepared), e.bound_prepared) << "row " << r;
          }
          if (kind == Kind::zeros) {
            ASSERT_EQ(y, 0.0);
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Accuracy, testing::ValuesIn(test::weight_types()),
                         [](const auto& type) { return std::string(traits(type.param).name); });

TEST(Prepare, QuantisesWithinHalfAStep) {
  for (const Kind kind : {Kind::normal, Kind::spikes, Kind::zeros}) {
    const auto x = test::random_activations(kind, 1, 2048, 3);
    const test::Prepared prepared(kernels(Isa::scalar), ActivationFormat::q8, x, 2048);
    const auto* blocks = reinterpret_cast<const Q8Block*>(prepared.rows(0, 1).data);
    for (std::uint32_t b = 0; b < 2048 / 32; ++b) {
      int sum = 0;
      for (int i = 0; i < 32; ++i) {
        const double error = x[32 * b + i] - double{blocks[b].scale} * blocks[b].q[i];
        ASSERT_LE(std::abs(error), blocks[b].scale * (0.5 + 0x1p-16));
        sum += blocks[b].q[i];
      }
      ASSERT_EQ(blocks[b].start, -128 * sum);
      ASSERT_EQ(blocks[b].half_sum[0] + blocks[b].half_sum[1], sum);
      ASSERT_EQ(blocks[b].scaled_sum, blocks[b].scale * static_cast<float>(sum));
    }
  }
}

// The rule of kernels/refine.h in other words, and what a second term leaves of the error.
TEST(Prepare, RefinesTheBlocksThatStandOutToWithinAnEighthBitMore) {
  constexpr std::uint32_t kCols = 6400;
  for (const Kind kind : {Kind::normal, Kind::spikes, Kind::rare_spikes, Kind::zeros}) {
    const auto x = test::random_activations(kind, 1, kCols, 3);
    for (const auto refinement : {Refinement::outliers, Refinement::most}) {
      const test::Prepared prepared(kernels(Isa::scalar), ActivationFormat::q8, x, kCols,
                                    refinement);
      const auto* blocks = reinterpret_cast<const Q8Block*>(prepared.rows(0, 1).data);
      const auto terms = test::terms_of(prepared.rows(0, 1).data, kCols);
      double mean = 0;
      for (std::size_t b = 0; b < terms.size(); ++b) {
        mean += double{blocks[b].scale} * blocks[b].scale / static_cast<double>(terms.size());
      }
      std::size_t refined = 0;
      for (std::size_t b = 0; b < terms.size(); ++b) {
        const double ratio = double{blocks[b].scale} * blocks[b].scale / mean;
        const double least = refinement == Refinement::most ? 0.5 : 8.0;
        if (std::abs(ratio - least) > 1e-9) {
          ASSERT_EQ(terms[b] != nullptr, ratio > least);
        }
        if (terms[b] == nullptr) continue;
        ++refined;
        for (int i = 0; i < 32; ++i) {
          const double value =
              double{blocks[b].scale} * blocks[b].q[i] + double{terms[b]->scale} * terms[b]->q[i];
          ASSERT_LE(std::abs(x[32 * b + i] - value), blocks[b].scale / 505.0);
        }
      }
      if (refinement == Refinement::outliers) {
        ASSERT_LE(refined, terms.size() / 8);
      }
      if (kind == Kind::rare_spikes) {
        ASSERT_GT(refined, 0U);
      }
      if (kind == Kind::normal) {
        ASSERT_EQ(refined > terms.size() / 2, refinement == Refinement::most);
      }
    }
  }
}

TEST(Prepare, MarksABlockThatIsNotFinite) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> x(64, 1.0F);
    x[40] = bad;
    const test::Prepared prepared(kernels(Isa::scalar), ActivationFormat::q8, x, 64);
    const auto* blocks = reinterpret_cast<const Q8Block*>(prepared.rows(0, 1).data);
    EXPECT_EQ(blocks[0].scale, 1.0F / 127.0F);
    EXPECT_TRUE(std::isnan(blocks[1].scale));
  }
}

TEST(Prepare, TakesBlocksBelowTheSmallestMagnitudeAsZeros) {
  std::vector<float> x(32, std::numeric_limits<float>::denorm_min());
  const test::Prepared prepared(kernels(Isa::scalar), ActivationFormat::q8, x, 32);
  EXPECT_EQ(reinterpret_cast<const Q8Block*>(prepared.rows(0, 1).data)->scale, 0.0F);
}

}  // namespace
}  // namespace edgerunner::cpu
