#include "base/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/cpu_features.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace edgerunner {
namespace {

constexpr std::uint32_t kSign = 0x80000000U;

float from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint32_t to_bits(float value) { return std::bit_cast<std::uint32_t>(value); }

// The machine's own conversions, to compare with.
#if defined(__x86_64__)
bool machine_converts() { return cpu_features().avx2; }  // which includes F16C
__attribute__((target("f16c"))) float machine_widen(std::uint16_t half) { return _cvtsh_ss(half); }
__attribute__((target("f16c"))) std::uint16_t machine_narrow(float value) {
  return static_cast<std::uint16_t>(
      _mm_extract_epi16(_mm_cvtps_ph(_mm_set_ss(value), _MM_FROUND_TO_NEAREST_INT), 0));
}
#elif defined(__aarch64__)
bool machine_converts() { return true; }
float machine_widen(std::uint16_t half) { return std::bit_cast<__fp16>(half); }
std::uint16_t machine_narrow(float value) {
  return std::bit_cast<std::uint16_t>(static_cast<__fp16>(value));
}
#else
bool machine_converts() { return false; }
float machine_widen(std::uint16_t) { return 0; }
std::uint16_t machine_narrow(float) { return 0; }
#endif

// 0 where both give the same half, or both NaN of the same sign.
int differs_from_machine(std::uint32_t bits) {
  const std::uint16_t ours = f32_to_f16(from_bits(bits));
  const std::uint16_t theirs = machine_narrow(from_bits(bits));
  if (std::isnan(from_bits(bits))) {
    return (ours & 0x7FFF) > 0x7C00 && (ours & 0x8000) == (theirs & 0x8000) ? 0 : 1;
  }
  return ours == theirs ? 0 : 1;
}

// What a finite half stands for, by its definition, in double.
double definition(std::uint16_t half) {
  const int exponent = (half >> 10) & 0x1F;
  const int mantissa = half & 0x3FF;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(Half, WidensEveryHalfToItsValue) {
  for (std::uint32_t i = 0; i < 0x10000; ++i) {
    const auto half = static_cast<std::uint16_t>(i);
    const float value = f16_to_f32(half);
    EXPECT_EQ(std::signbit(value), (half & 0x8000) != 0);
    if ((half & 0x7C00) != 0x7C00) {
      ASSERT_EQ(static_cast<double>(value), definition(half)) << half;
    } else if ((half & 0x3FF) == 0) {
      ASSERT_TRUE(std::isinf(value)) << half;
    } else {
      ASSERT_TRUE(std::isnan(value)) << half;
    }
  }
}

TEST(Half, WidensAsTheMachineDoes) {
  if (!machine_converts()) GTEST_SKIP() << "this machine has no half conversions";
  for (std::uint32_t i = 0; i < 0x10000; ++i) {
    const auto half = static_cast<std::uint16_t>(i);
    if (std::isnan(f16_to_f32(half))) continue;
    ASSERT_EQ(to_bits(f16_to_f32(half)), to_bits(machine_widen(half))) << half;
  }
}

TEST(Half, NarrowsEveryHalfToItself) {
  for (std::uint32_t i = 0; i < 0x10000; ++i) {
    const auto half = static_cast<std::uint16_t>(i);
    const std::uint16_t back = f32_to_f16(f16_to_f32(half));
    if ((half & 0x7FFF) > 0x7C00) {
      ASSERT_EQ(back, half | 0x0200) << half;  // NaN becomes quiet
    } else {
      ASSERT_EQ(back, half);
    }
  }
}

TEST(Half, RoundsToNearestEvenAtEveryBorder) {
  for (std::uint32_t i = 0; i < 0x7BFF; ++i) {
    const auto half = static_cast<std::uint16_t>(i);
    const auto next = static_cast<std::uint16_t>(i + 1);
    const auto middle = static_cast<float>((definition(half) + definition(next)) / 2);  // exact
    const std::uint16_t even = (half & 1) == 0 ? half : next;
    ASSERT_EQ(f32_to_f16(middle), even) << half;
    ASSERT_EQ(f32_to_f16(-middle), even | 0x8000) << half;
    ASSERT_EQ(f32_to_f16(from_bits(to_bits(middle) - 1)), half) << half;
    ASSERT_EQ(f32_to_f16(from_bits(to_bits(middle) + 1)), next) << half;
  }
}

TEST(Half, OverflowsToInfinityHalfAStepPastTheLargest) {
  EXPECT_EQ(f32_to_f16(65504.0F), 0x7BFF);
  EXPECT_EQ(f32_to_f16(std::nextafter(65520.0F, 0.0F)), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65520.0F), 0x7C00);
  EXPECT_EQ(f32_to_f16(-65520.0F), 0xFC00);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::max()), 0x7C00);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::infinity()), 0x7C00);
  EXPECT_EQ(f32_to_f16(-std::numeric_limits<float>::infinity()), 0xFC00);
}

TEST(Half, UnderflowsToSignedZero) {
  EXPECT_EQ(f32_to_f16(-0.0F), 0x8000);
  EXPECT_EQ(f32_to_f16(0x1p-25F), 0x0000);  // half of the smallest: ties to even
  EXPECT_EQ(f32_to_f16(std::nextafter(0x1p-25F, 1.0F)), 0x0001);
  EXPECT_EQ(f32_to_f16(-std::numeric_limits<float>::denorm_min()), 0x8000);
}

TEST(Half, KeepsNan) {
  for (const std::uint32_t bits : {0x7F800001U, 0x7FC00000U, 0x7FFFFFFFU, 0xFF800001U}) {
    const std::uint16_t half = f32_to_f16(from_bits(bits));
    EXPECT_GT(half & 0x7FFF, 0x7C00) << bits;
    EXPECT_EQ((half & 0x8000) != 0, (bits & kSign) != 0) << bits;
  }
}

TEST(Half, NarrowsAsTheMachineDoes) {
  if (!machine_converts()) GTEST_SKIP() << "this machine has no half conversions";
  std::uint64_t different = 0;
  // A stride coprime to every power of two visits all exponents and all low bits.
  for (std::uint64_t bits = 0; bits <= 0xFFFFFFFFU; bits += 251) {
    different += differs_from_machine(static_cast<std::uint32_t>(bits));
  }
  for (std::uint32_t high = 0; high < 0x10000; ++high) {  // around each change of the upper half
    for (int low = -2; low <= 2; ++low) {
      different += differs_from_machine((high << 16) + static_cast<std::uint32_t>(low));
    }
  }
  EXPECT_EQ(different, 0U);
}

TEST(Bfloat, WidensToTheUpperHalfOfAFloatAndBack) {
  for (std::uint32_t i = 0; i < 0x10000; ++i) {
    const auto half = static_cast<std::uint16_t>(i);
    ASSERT_EQ(to_bits(bf16_to_f32(half)), i << 16);
    const bool nan = (i & 0x7FFF) > 0x7F80;
    ASSERT_EQ(f32_to_bf16(bf16_to_f32(half)), nan ? (half | 0x40) : half);
  }
}

TEST(Bfloat, RoundsToNearestEvenAtEveryBorder) {
  for (std::uint32_t i = 0; i < 0x7F80; ++i) {  // finite; the last one's upper border is infinity
    const std::uint32_t middle = (i << 16) | 0x8000U;
    const std::uint32_t even = i + (i & 1);
    for (const std::uint32_t sign : {0U, kSign}) {
      ASSERT_EQ(f32_to_bf16(from_bits(sign | middle)), (sign >> 16) | even) << i;
      ASSERT_EQ(f32_to_bf16(from_bits(sign | (middle - 1))), (sign >> 16) | i) << i;
      ASSERT_EQ(f32_to_bf16(from_bits(sign | (middle + 1))), (sign >> 16) | (i + 1)) << i;
    }
  }
}

TEST(Bfloat, KeepsNan) {
  for (const std::uint32_t bits : {0x7F800001U, 0x7FFFFFFFU, 0xFF800001U, 0xFFFFFFFFU}) {
    EXPECT_GT(f32_to_bf16(from_bits(bits)) & 0x7FFF, 0x7F80) << bits;
  }
}

}  // namespace
}  // namespace edgerunner
