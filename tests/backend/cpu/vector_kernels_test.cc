#include "backend/cpu/vector_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>
#include <vector>

#include "support/machine_isas.h"

namespace edgerunner::cpu {
namespace {

using test::machine_isas;

std::vector<float> gaussian(std::size_t size, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(size);
  for (float& value : values) value = normal(random);
  return values;
}

TEST(VectorKernels, Exp2ErrsAtMost2e7) {
  std::vector<float> x;
  for (float value = 0; value > -124; value -= 1.0F / 1024) x.push_back(value * 1.00003F);
  for (const Isa isa : machine_isas()) {
    std::vector<float> out(x.size());
    vector_kernels(isa).exp2(x.data(), static_cast<std::uint32_t>(x.size()), out.data());
    double largest = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double wanted = std::exp2(static_cast<double>(x[i]));
      largest = std::max(largest, std::abs(static_cast<double>(out[i]) / wanted - 1));
    }
    RecordProperty(std::string(name(isa)), std::to_string(largest));
    EXPECT_LE(largest, 2.5e-7) << name(isa);
  }
}

TEST(VectorKernels, Exp2IsExactAtItsEnds) {
  for (const Isa isa : machine_isas()) {
    const float x[] = {0.0F, -1.0F, -125.0F, -125.5F, -1e30F, -INFINITY, NAN};
    float out[7];
    vector_kernels(isa).exp2(x, 7, out);
    EXPECT_EQ(out[0], 1.0F);
    EXPECT_EQ(out[1], 0.5F);
    EXPECT_EQ(out[2], 0x1p-125F);
    EXPECT_EQ(out[3], 0.0F);
    EXPECT_EQ(out[4], 0.0F);
    EXPECT_EQ(out[5], 0.0F);
    EXPECT_TRUE(std::isnan(out[6])) << name(isa);
  }
}

// Sums of two powers of two that each err by 2.5e-7, on numbers up to the cap.
TEST(VectorKernels, SoftCapErrsAtMost1e6OfTheCap) {
  std::vector<float> x{0.0F, -0.0F, 1e-30F, 6e4F, -6e4F, 3e38F, -3e38F};
  for (float value = -300; value < 300; value += 0.37F) x.push_back(value);
  for (const Isa isa : machine_isas()) {
    for (const float cap : {4.0F, 30.0F, 50.0F}) {
      std::vector<float> out = x;
      vector_kernels(isa).soft_cap(out.data(), static_cast<std::uint32_t>(out.size()), 0.5F, cap);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double wanted = cap * std::tanh(0.5 * static_cast<double>(x[i]) / cap);
        EXPECT_NEAR(out[i], wanted, 1e-6 * cap) << x[i] << " on " << name(isa);
      }
    }
    std::vector<float> out = x;
    vector_kernels(isa).soft_cap(out.data(), static_cast<std::uint32_t>(out.size()), 0.5F, 0.0F);
    EXPECT_EQ(out.back(), x.back() * 0.5F);
  }
}

TEST(VectorKernels, RmsNormFollowsItsFormula) {
  for (const Isa isa : machine_isas()) {
    for (const std::uint32_t size : {1U, 8U, 17U, 64U, 100U, 576U, 2048U}) {
      const auto x = gaussian(size, size);
      const auto weight = gaussian(size, size + 1);
      std::vector<float> out(size);
      vector_kernels(isa).rms_norm(x.data(), weight.data(), size, 1e-5F, out.data());
      double squares = 0;
      for (const float value : x) squares += static_cast<double>(value) * value;
      const double scale = 1 / std::sqrt(squares / size + 1e-5);
      for (std::uint32_t i = 0; i < size; ++i) {
        const double wanted = x[i] * scale * weight[i];
        EXPECT_NEAR(out[i], wanted, 1e-6 * std::abs(wanted) + 1e-12) << name(isa) << " " << size;
      }
    }
  }
}

TEST(VectorKernels, LayerNormFollowsItsFormula) {
  for (const Isa isa : machine_isas()) {
    for (const std::uint32_t size : {1U, 8U, 17U, 64U, 100U, 576U, 2048U}) {
      auto x = gaussian(size, size);
      for (float& value : x) value += 3.0F;  // a mean to subtract
      const auto weight = gaussian(size, size + 1);
      const auto bias = gaussian(size, size + 2);
      std::vector<float> out(size);
      vector_kernels(isa).layer_norm(x.data(), weight.data(), bias.data(), size, 1e-5F, out.data());
      double mean = 0;
      for (const float value : x) mean += static_cast<double>(value) / size;
      double squares = 0;
      for (const float value : x) squares += (value - mean) * (value - mean);
      const double scale = 1 / std::sqrt(squares / size + 1e-5);
      for (std::uint32_t i = 0; i < size; ++i) {
        // The mean errs by about a rounding of 3.
        const double slack = 2e-6 * (1 + scale * std::abs(weight[i]) + std::abs(bias[i]));
        EXPECT_NEAR(out[i], (x[i] - mean) * scale * weight[i] + bias[i], slack)
            << name(isa) << " " << size;
      }
    }
  }
}

TEST(VectorKernels, GeluErrsAtMost1e6) {
  std::vector<float> x{0.0F, -0.0F, 1e-30F, 6e4F, -6e4F, 1e12F, -1e12F};
  for (float value = -12; value < 12; value += 0.0137F) x.push_back(value);
  for (const Isa isa : machine_isas()) {
    std::vector<float> out(x.size());
    vector_kernels(isa).gelu(x.data(), static_cast<std::uint32_t>(x.size()), out.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double y = x[i];
      const double u = std::sqrt(2 / std::numbers::pi) * (y + 0.044715 * y * y * y);
      const double wanted = y / (1 + std::exp(-2 * u));
      EXPECT_NEAR(out[i], wanted, 1e-6 * std::min(1.0, std::abs(y)) + 1e-6 * std::abs(wanted))
          << y << " on " << name(isa);
    }
  }
}

TEST(VectorKernels, RotatesBothLayoutsAndLeavesTheRestOfAHead) {
  for (const Isa isa : machine_isas()) {
    for (const RopeLayout layout : {RopeLayout::interleaved, RopeLayout::half_split}) {
      for (const std::uint32_t dims : {4U, 8U, 32U, 40U, 64U}) {
        const std::uint32_t head_dim = dims + (dims % 16 == 8 ? 8 : 0);
        const auto x = gaussian(head_dim, dims);
        std::vector<float> cosine(dims);
        std::vector<float> sine(dims);
        std::vector<double> wanted(x.begin(), x.end());
        for (std::uint32_t pair = 0; pair < dims / 2; ++pair) {
          const bool neighbours = layout == RopeLayout::interleaved;
          const std::uint32_t a = neighbours ? 2 * pair : pair;
          const std::uint32_t b = neighbours ? a + 1 : pair + dims / 2;
          const double c = std::cos(0.3 * pair);
          const double s = std::sin(0.3 * pair);
          cosine[a] = cosine[b] = static_cast<float>(c);
          sine[a] = static_cast<float>(-s);
          sine[b] = static_cast<float>(s);
          wanted[a] = x[a] * c - x[b] * s;
          wanted[b] = x[a] * s + x[b] * c;
        }
        std::vector<float> out(head_dim);
        vector_kernels(isa).rotate(x.data(), {cosine.data(), sine.data(), dims, layout}, head_dim,
                                   0.5F, out.data());
        for (std::uint32_t i = 0; i < head_dim; ++i) {
          EXPECT_NEAR(out[i], 0.5 * wanted[i], 1e-6) << name(isa) << " dims " << dims;
        }
      }
    }
  }
}

TEST(VectorKernels, TheCacheClampsWhatAHalfCannotHold) {
  const KvHeadLayout layout{8, KvPrecision::f16};
  for (const Isa isa : machine_isas()) {
    const float values[8] = {1e9F, -1e9F, 65504.0F, -65504.0F, 1.0F, 0.0F, INFINITY, NAN};
    std::vector<std::uint16_t> block(layout.bytes() / 2);
    vector_kernels(isa).store_values(values, 8, 1, 3, layout,
                                     reinterpret_cast<std::byte*>(block.data()));
    const std::uint16_t* stored = block.data() + layout.values() / 2 + 3 * 16;
    EXPECT_EQ(stored[0], 0x7BFF);
    EXPECT_EQ(stored[1], 0xFBFF);
    EXPECT_EQ(stored[2], 0x7BFF);
    EXPECT_EQ(stored[3], 0xFBFF);
    EXPECT_EQ(stored[4], 0x3C00);
    EXPECT_EQ(stored[5], 0);
    EXPECT_EQ(stored[6], 0x7BFF);
    EXPECT_GT(stored[7] & 0x7FFF, 0x7C00) << "not a number stays so, " << name(isa);
    EXPECT_EQ(stored[8], 0) << "the pad stays zero";
  }
}

TEST(VectorKernels, TheEightBitCacheRoundsToNearestWithinAHeadsScale) {
  for (const std::uint32_t head_dim : {8U, 64U, 80U, 256U}) {
    const KvHeadLayout layout{head_dim, KvPrecision::q8};
    std::vector<float> values = gaussian(head_dim, head_dim);
    values[head_dim / 2] = 20.0F;  // an outlier sets the scale of all
    std::vector<std::byte> first;
    for (const Isa isa : machine_isas()) {
      std::vector<std::byte> block(layout.bytes());
      std::vector<std::byte> scratch(attention_scratch_bytes(head_dim, 1));
      vector_kernels(isa).store_keys(values.data(), head_dim, 1, 5, layout, block.data(),
                                     scratch.data());
      vector_kernels(isa).store_values(values.data(), head_dim, 1, 7, layout, block.data());
      const auto* keys = reinterpret_cast<const std::int8_t*>(block.data());
      const auto* stored = reinterpret_cast<const std::int8_t*>(block.data() + layout.values());
      const float key_scale = reinterpret_cast<const float*>(block.data() + layout.key_scales())[5];
      const float value_scale =
          reinterpret_cast<const float*>(block.data() + layout.value_scales())[7];
      EXPECT_EQ(key_scale, 20.0F / 127) << name(isa);
      EXPECT_EQ(value_scale, 20.0F / 127) << name(isa);
      for (std::uint32_t i = 0; i < head_dim; ++i) {
        const int code = keys[i * kPageTokens + 5];
        EXPECT_EQ(code, stored[7 * layout.value_stride() + i]);
        EXPECT_LE(std::abs(static_cast<double>(key_scale) * code - values[i]),
                  key_scale * (0.5 + 0x1p-16))
            << name(isa);
      }
      if (first.empty()) first = block;
      EXPECT_TRUE(block == first) << name(isa) << " differs";
    }
  }
}

TEST(VectorKernels, TheEightBitCacheMarksAHeadThatIsNotFinite) {
  const KvHeadLayout layout{8, KvPrecision::q8};
  for (const Isa isa : machine_isas()) {
    for (const float odd : {INFINITY, -INFINITY, NAN}) {
      const float values[8] = {1, 2, odd, 3, 4, 5, 6, 7};
      std::vector<std::byte> block(layout.bytes());
      vector_kernels(isa).store_values(values, 8, 1, 3, layout, block.data());
      EXPECT_TRUE(
          std::isnan(reinterpret_cast<const float*>(block.data() + layout.value_scales())[3]));
    }
    const float tiny[8] = {0x1p-140F, -0x1p-130F};
    std::vector<std::byte> block(layout.bytes(), std::byte{0x55});
    vector_kernels(isa).store_values(tiny, 8, 1, 0, layout, block.data());
    EXPECT_EQ(*reinterpret_cast<const float*>(block.data() + layout.value_scales()), 0.0F);
    EXPECT_EQ(block[layout.values()], std::byte{0}) << name(isa);
  }
}

}  // namespace
}  // namespace edgerunner::cpu
