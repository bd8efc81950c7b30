// Every kernel of every instruction set that this machine has, against the portable kernels (where
// AMX has an order of its own, against that, written plainly): the same bits for any number of rows
// and tokens and any split, and nothing written beside the output.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "backend/cpu/kernels/q8_block.h"
#include "cpu/kernels/random_weights.h"
#include "cpu/kernels/run_product.h"
#include "cpu/kernels/tile_order.h"
#include "support/machine_isas.h"

namespace edgerunner::cpu {
namespace {

using test::Kind;

constexpr std::uint32_t kMostRows = 96;
constexpr std::uint32_t kMostTokens = 65;
constexpr float kCanary = -12345.678F;

// Those that this machine runs and that have matrix products of their own.
std::vector<Isa> vector_isas() {
  std::vector<Isa> isas = test::machine_isas();
  std::erase_if(isas, [](Isa isa) { return isa == Isa::scalar || kernels(isa).isa != isa; });
  return isas;
}

// What a product with all rows and tokens must give on an instruction set.
struct ExpectedProduct {
  test::RandomWeights weights;
  std::vector<float> x;
  std::vector<float> out;  // [kMostTokens, kMostRows]

  ExpectedProduct(Isa isa, ElementType type, ActivationFormat format, Kind kind, std::uint32_t cols,
                  Refinement refinement)
      : weights(type, kMostRows, cols, cols),
        x(test::random_activations(kind, kMostTokens, cols, cols + 1)),
        out(std::size_t{kMostTokens} * kMostRows) {
    const Matrix matrix = weights.matrix(kMostRows);
    const test::Prepared prepared(kernels(Isa::scalar), format, x, cols, refinement);
    test::run_reference(isa, {.weights = &matrix,
                              .x = prepared.rows(0, kMostTokens),
                              .out = out.data(),
                              .out_stride = kMostRows});
  }
};

// Compares outputs [rows, tokens] computed into the middle of a field of canaries.
void expect_same(const Kernels& isa, const ExpectedProduct& expected,
                 const test::Prepared& prepared, std::uint32_t rows, std::uint32_t first_token,
                 std::uint32_t tokens) {
  const Matrix matrix = expected.weights.matrix(rows);
  const std::size_t stride = rows + 5;
  std::vector<float> field((tokens + 2) * stride, kCanary);
  float* out = field.data() + stride;
  test::run(isa, {.weights = &matrix,
                  .x = prepared.rows(first_token, tokens),
                  .out = out,
                  .out_stride = stride});
  for (std::uint32_t t = 0; t < tokens; ++t) {
    const float* want = &expected.out[std::size_t{first_token + t} * kMostRows];
    ASSERT_EQ(std::memcmp(out + t * stride, want, rows * sizeof(float)), 0)
        << rows << " rows, " << tokens << " tokens, token " << t << ": " << out[t * stride]
        << " instead of " << want[0];
    for (std::size_t i = rows; i < stride; ++i) ASSERT_EQ(out[t * stride + i], kCanary);
  }
  for (std::size_t i = 0; i < stride; ++i) {
    ASSERT_EQ(field[i], kCanary);
    ASSERT_EQ(field[(tokens + 1) * stride + i], kCanary);
  }
}

std::vector<std::uint32_t> widths(ElementType type) {
  switch (traits(type).block_length) {
    case 1:
      return {576, 33, 1, 1500};
    case 32:
      return {32, 96, 160, 224, 288, 576, 1184, 1536};
    default:
      return {256, 512, 768, 1280};
  }
}

class SameBits : public testing::TestWithParam<std::tuple<Isa, ElementType, Precision>> {};

TEST_P(SameBits, AsThePortableKernels) {
  const auto [isa, type, precision] = GetParam();
  const ActivationFormat format = activation_format(type, precision);
  for (const std::uint32_t cols : widths(type)) {
    for (const Kind kind : {Kind::normal, Kind::spikes, Kind::rare_spikes}) {
      if (kind == Kind::spikes && cols != widths(type)[0]) continue;
      if (kind == Kind::rare_spikes && cols != widths(type).back()) continue;
      const Refinement refinement = kind == Kind::normal ? Refinement::most : Refinement::outliers;
      const ExpectedProduct expected(isa, type, format, kind, cols, refinement);
      const test::Prepared prepared(kernels(isa), format, expected.x, cols, refinement);
      SCOPED_TRACE(std::to_string(cols) + " columns");
      for (const std::uint32_t tokens :
           {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U, 9U, 13U, 16U, 17U, 31U, 32U, 33U, 65U}) {
        ASSERT_NO_FATAL_FAILURE(
            expect_same(kernels(isa), expected, prepared, 33, (kMostTokens - tokens) / 2, tokens));
      }
      for (const std::uint32_t rows : {1U, 2U, 7U, 8U, 16U, 24U, 31U, 32U, 96U}) {
        ASSERT_NO_FATAL_FAILURE(expect_same(kernels(isa), expected, prepared, rows, 3, 1));
        ASSERT_NO_FATAL_FAILURE(expect_same(kernels(isa), expected, prepared, rows, 5, 2));
        ASSERT_NO_FATAL_FAILURE(expect_same(kernels(isa), expected, prepared, rows, 0, 32));
      }
    }
  }
}

std::string case_name(const testing::TestParamInfo<SameBits::ParamType>& info) {
  const auto [isa, type, precision] = info.param;
  return std::string(name(isa)) + "_" + std::string(traits(type).name) +
         (precision == Precision::fast ? "_fast" : "_exact");
}

INSTANTIATE_TEST_SUITE_P(All, SameBits,
                         testing::Combine(testing::ValuesIn(vector_isas()),
                                          testing::ValuesIn(test::weight_types()),
                                          testing::Values(Precision::fast, Precision::exact)),
                         case_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SameBits);

class EveryIsa : public testing::TestWithParam<Isa> {};

// Whether what means something of two prepared rows is the same.
bool same_row(ActivationFormat format, const std::byte* a, const std::byte* b, std::uint32_t cols) {
  if (format != ActivationFormat::q8) {
    return std::memcmp(a, b, prepared_row_bytes(format, cols) / 64 * 64 - 63) == 0;
  }
  const std::uint32_t blocks = q8_blocks(cols);
  if (std::memcmp(a, b, q8_terms_offset(blocks)) != 0) return false;
  bool same = true;
  for_each_term(a, blocks, [&](std::uint32_t block, const Q8Block&) {
    const std::size_t at = q8_terms_offset(blocks) + block * sizeof(Q8Block);
    same = same && std::memcmp(a + at, b + at, sizeof(Q8Block)) == 0;
  });
  return same;
}

TEST_P(EveryIsa, PreparesTheSameBytes) {
  for (const std::uint32_t cols : {32U, 33U, 576U, 1000U, 2049U, 4096U}) {
    for (const Kind kind : {Kind::normal, Kind::spikes, Kind::rare_spikes, Kind::zeros}) {
      const auto x = test::random_activations(kind, 9, cols, 5);
      for (const auto format :
           {ActivationFormat::f32, ActivationFormat::bf16, ActivationFormat::q8}) {
        for (const auto refinement : {Refinement::outliers, Refinement::most}) {
          const test::Prepared want(kernels(Isa::scalar), format, x, cols, refinement);
          const test::Prepared got(kernels(GetParam()), format, x, cols, refinement);
          for (std::uint32_t r = 0; r < 9; ++r) {
            ASSERT_TRUE(same_row(format, want.rows(r, 1).data, got.rows(r, 1).data, cols))
                << cols << " columns, format " << static_cast<int>(format);
          }
        }
      }
    }
  }
}

TEST_P(EveryIsa, AppliesBiasAndEpilogueAlike) {
  constexpr std::uint32_t kRows = 39;
  constexpr std::uint32_t kMost = 7;
  constexpr std::uint32_t kCols = 64;
  const auto x = test::random_activations(Kind::normal, kMost, kCols, 2);
  const auto bias = test::random_activations(Kind::normal, 1, kRows, 3);
  auto before = test::random_activations(Kind::normal, kMost, kRows, 4);
  for (std::size_t i = 0; i < before.size(); ++i) before[i] *= static_cast<float>(i % 40);
  for (const ElementType type : {ElementType::q8_0, ElementType::f16}) {
    const test::RandomWeights weights(type, kRows, kCols, 1);
    const Matrix matrix = weights.matrix(kRows);
    const ActivationFormat format = activation_format(type, Precision::fast);
    for (const std::uint32_t tokens : {2U, kMost}) {
      for (const float* b : {static_cast<const float*>(nullptr), bias.data()}) {
        for (const auto epilogue : {Epilogue::store, Epilogue::add, Epilogue::silu_multiply}) {
          std::vector<float> results[2] = {before, before};
          const test::Prepared prepared(kernels(GetParam()), format, x, kCols);
          Product product{.weights = &matrix,
                          .bias = b,
                          .x = prepared.rows(0, tokens),
                          .out = results[0].data(),
                          .out_stride = kRows,
                          .epilogue = epilogue};
          test::run_reference(GetParam(), product);
          product.out = results[1].data();
          test::run(kernels(GetParam()), product);
          ASSERT_EQ(
              std::memcmp(results[0].data(), results[1].data(), before.size() * sizeof(float)), 0)
              << tokens << " tokens, epilogue " << static_cast<int>(epilogue);
        }
      }
    }
  }
}

// Rows too long for a panel of them to stand in scratch.
// A product's outputs, all written, against the reference.
void expect_reference_bits(Isa isa, Product product, const std::string& what) {
  std::vector<float> results[2];
  for (std::vector<float>& result : results) {
    result.resize(std::size_t{product.x.rows} * product.weights->rows);
  }
  product.out_stride = product.weights->rows;
  product.out = results[0].data();
  test::run_reference(isa, product);
  product.out = results[1].data();
  test::run(kernels(isa), product);
  ASSERT_EQ(std::memcmp(results[0].data(), results[1].data(), results[0].size() * sizeof(float)), 0)
      << what;
}

TEST_P(EveryIsa, MultipliesRowsOfAnyLength) {
  constexpr std::uint32_t kRows = 9;
  constexpr std::uint32_t kCols = 31'337;
  constexpr std::uint32_t kTokens = 9;
  const auto x = test::random_activations(Kind::normal, kTokens, kCols, 2);
  for (const ElementType type : {ElementType::f16, ElementType::bf16}) {
    const test::RandomWeights weights(type, kRows, kCols, 1);
    const Matrix matrix = weights.matrix(kRows);
    for (const std::uint32_t tokens : {1U, kTokens}) {
      const test::Prepared prepared(kernels(GetParam()), ActivationFormat::bf16, x, kCols);
      ASSERT_NO_FATAL_FAILURE(
          expect_reference_bits(GetParam(), {.weights = &matrix, .x = prepared.rows(0, tokens)},
                                std::to_string(tokens) + " tokens"));
    }
  }
}

// More weight rows than sums are kept of, and more tokens, which fill no tile; and, where it is
// said what becomes of them, activations and products so small that they are subnormal.
TEST_P(EveryIsa, MultipliesManyRowsOfHalves) {
  struct Size {
    std::uint32_t rows;
    std::uint32_t tokens;
    std::uint32_t cols;
  };
  // The last: three tiles of AMX, and more columns than its panel.
  const Size sizes[] = {{2100, 1, 70}, {1100, 11, 70}, {70, 513, 70}, {40, 21, 70}, {17, 33, 2700}};
  for (const auto& [rows, tokens, cols] : sizes) {
    auto x = test::random_activations(Kind::spikes, tokens, cols, 2);
    if (GetParam() == Isa::amx && tokens == 21) {
      for (float& value : x) value *= 1e-41F;
    }
    const test::Prepared prepared(kernels(GetParam()), ActivationFormat::bf16, x, cols);
    for (const ElementType type : {ElementType::f16, ElementType::bf16}) {
      const test::RandomWeights weights(type, rows, cols, 1);
      const Matrix matrix = weights.matrix(rows);
      ASSERT_NO_FATAL_FAILURE(expect_reference_bits(
          GetParam(), {.weights = &matrix, .x = prepared.rows(0, tokens)},
          std::to_string(rows) + " rows, " + std::to_string(tokens) + " tokens"));
    }
  }
}

// More tokens than a group of panels takes, rows that fill no panel, and second terms.
TEST_P(EveryIsa, MultipliesByAGateAsByWhatItStores) {
  constexpr std::uint32_t kRows = 39;
  constexpr std::uint32_t kCols = 96;
  constexpr std::uint32_t kTokens = 515;
  const auto x = test::random_activations(Kind::normal, kTokens, kCols, 3);
  const auto bias = test::random_activations(Kind::normal, 1, kRows, 4);
  const Kernels& isa = kernels(GetParam());
  const ElementType types[][2] = {{ElementType::q8_0, ElementType::q4_0},
                                  {ElementType::f16, ElementType::bf16}};
  for (const auto& [gate_type, type] : types) {
    const test::RandomWeights gate_weights(gate_type, kRows, kCols, 1);
    const test::RandomWeights weights(type, kRows, kCols, 2);
    const Matrix gate_matrix = gate_weights.matrix(kRows);
    const Matrix matrix = weights.matrix(kRows);
    const test::Prepared prepared(isa, activation_format(type, Precision::fast), x, kCols,
                                  Refinement::most);
    for (const std::uint32_t tokens : {1U, 2U, 3U, 70U, kTokens}) {
      for (const auto epilogue : {Epilogue::silu_multiply, Epilogue::gelu_multiply}) {
        std::vector<float> apart(std::size_t{tokens} * kRows);
        std::vector<float> together(apart.size());
        Product gate{.weights = &gate_matrix,
                     .bias = bias.data(),
                     .x = prepared.rows(0, tokens),
                     .out = apart.data(),
                     .out_stride = kRows};
        Product product = gate;
        product.weights = &matrix;
        product.bias = nullptr;
        product.epilogue = epilogue;
        test::run(isa, gate);
        test::run(isa, product);
        gate.out = product.out = together.data();
        product.gate = &gate;
        test::run(isa, product);
        ASSERT_EQ(std::memcmp(apart.data(), together.data(), apart.size() * sizeof(float)), 0)
            << tokens << " tokens, epilogue " << static_cast<int>(epilogue);
      }
    }
  }
}

TEST_P(EveryIsa, GivesTheSameBitsForAnySplitOfTheRows) {
  const test::RandomWeights weights(ElementType::q4_k, 96, 512, 1);
  const Matrix matrix = weights.matrix(96);
  const Kernels& isa = kernels(GetParam());
  const auto x = test::random_activations(Kind::normal, 5, 512, 2);
  const test::Prepared prepared(isa, ActivationFormat::q8, x, 512);
  std::vector<float> whole(5 * 96);
  std::vector<float> parts(5 * 96);
  Product product{
      .weights = &matrix, .x = prepared.rows(0, 5), .out = whole.data(), .out_stride = 96};
  test::run(isa, product);
  product.out = parts.data();
  const test::AlignedBytes scratch(multiply_scratch_bytes(512));
  isa.multiply(product, 48, 96, scratch.data());
  isa.multiply(product, 0, 16, scratch.data());
  isa.multiply(product, 16, 48, scratch.data());
  EXPECT_EQ(std::memcmp(whole.data(), parts.data(), whole.size() * sizeof(float)), 0);
}

// As a forward pass does it: shares of products of several types with one scratch, two operands in
// turn, of as many rows as the kernels of few rows take, and of more.
TEST_P(EveryIsa, GivesTheSameBitsWithAnOperandThatStandsInScratch) {
  constexpr std::uint32_t kRows = 71;  // whole tiles, and a rest that panels take
  constexpr std::uint32_t kCols = 512;
  const Kernels& isa = kernels(GetParam());
  const test::AlignedBytes scratch(multiply_scratch_bytes(kCols));
  std::uint64_t operand = 0;
  for (const std::uint32_t tokens : {1U, 3U, 12U, 16U, 40U, 1U}) {
    for (const Kind kind : {Kind::normal, Kind::rare_spikes}) {
      const auto x = test::random_activations(kind, tokens, kCols, tokens);
      const test::Prepared prepared(isa, ActivationFormat::q8, x, kCols, Refinement::most);
      const test::Prepared halves(isa, ActivationFormat::bf16, x, kCols);
      ++operand;
      for (const ElementType type :
           {ElementType::q8_0, ElementType::q4_k, ElementType::q5_1, ElementType::f16,
            ElementType::q5_1, ElementType::q4_0, ElementType::q4_0, ElementType::q8_0,
            ElementType::q6_k, ElementType::q2_k}) {
        const test::RandomWeights weights(type, kRows, kCols, 1);
        const Matrix matrix = weights.matrix(kRows);
        std::vector<float> whole(std::size_t{tokens} * kRows);
        std::vector<float> shares(whole.size());
        Product product{.weights = &matrix,
                        .x = (type == ElementType::f16 ? halves : prepared).rows(0, tokens),
                        .out = whole.data(),
                        .out_stride = kRows};
        test::run(isa, product);
        product.out = shares.data();
        product.operand = operand;
        isa.multiply(product, 0, 32, scratch.data());
        isa.multiply(product, 32, 48, scratch.data());
        product.then = matrix.data.data();
        isa.multiply(product, 48, kRows, scratch.data());
        ASSERT_EQ(std::memcmp(whole.data(), shares.data(), whole.size() * sizeof(float)), 0)
            << traits(type).name << ", " << tokens << " tokens";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, EveryIsa, testing::ValuesIn(vector_isas()),
                         [](const auto& isa) { return std::string(name(isa.param)); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EveryIsa);

}  // namespace
}  // namespace edgerunner::cpu
