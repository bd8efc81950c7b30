#pragma once

// The vector operations that the panel algorithm is written over, on NEON with the dot product
// instructions. Included by translation units of this instruction set only.

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/neon/prepare.h"
#include "backend/cpu/kernels/q8_block.h"
#include "backend/cpu/kernels/scratch.h"

namespace edgerunner::cpu {
namespace {

struct Neon {
  using F = float32x4_t;
  using I = int32x4_t;
  static constexpr int kLanes = 4;
  // Of 32 registers, 4 x 4 hold integer sums and 4 + 1 operands; the float sums, used once a block,
  // may wait in memory.
  static constexpr int kPanels = 4;
  static constexpr int kTokens = 4;
  static constexpr int kTokensHalves = 4;
  // Weight rows and rows of activations of a bfloat16 tile: 4 x 4 sums leave 16 registers for both
  // halves of the pairs of the activations and of a row.
  static constexpr int kBf16Vectors = 4;
  static constexpr std::uint32_t kBf16Tokens = kNeonBf16Tokens;

  static F zero() { return vdupq_n_f32(0.0F); }
  static F set(float x) { return vdupq_n_f32(x); }
  static F load(const float* p) { return vld1q_f32(p); }
  static void store(float* p, F x) { vst1q_f32(p, x); }
  static F load_first(const float* p, std::uint32_t count) {
    if (count >= kLanes) return vld1q_f32(p);
    float lanes[kLanes] = {};
    for (std::uint32_t i = 0; i < count; ++i) lanes[i] = p[i];
    return vld1q_f32(lanes);
  }
  static void store_first(float* p, F x, std::uint32_t count) {
    if (count >= kLanes) return vst1q_f32(p, x);
    float lanes[kLanes];
    vst1q_f32(lanes, x);
    for (std::uint32_t i = 0; i < count; ++i) p[i] = lanes[i];
  }
  static F add(F a, F b) { return vaddq_f32(a, b); }
  static F sub(F a, F b) { return vsubq_f32(a, b); }
  static F mul(F a, F b) { return vmulq_f32(a, b); }
  static F div(F a, F b) { return vdivq_f32(a, b); }
  static F fma(F a, F b, F c) { return vfmaq_f32(c, a, b); }
  // b where a is not a number, as in the portable kernels; the machine's own would give a.
  static F max(F a, F b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
  static F min(F a, F b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
  static F negate(F a) { return vnegq_f32(a); }
  static F power_of_two(F shifted) {
    const int32x4_t exponent = vshlq_n_s32(vreinterpretq_s32_f32(shifted), 23);
    return vreinterpretq_f32_s32(vaddq_s32(exponent, vdupq_n_s32(127 << 23)));
  }
  static F to_float(I a) { return vcvtq_f32_s32(a); }

  // Four codes a lane, against the same four activations in every lane. The dot product of bytes
  // takes both of one signedness, so the panel holds codes without their offset (Format::read), and
  // no sum needs to be corrected.
  using Codes = int8x16_t;
  template <bool kSigned>
  static Codes load_codes(const std::uint8_t* p) {
    return vreinterpretq_s8_u8(vld1q_u8(p));
  }
  static I broadcast(const void* four_bytes) {
    std::int32_t bits = 0;
    __builtin_memcpy(&bits, four_bytes, sizeof bits);
    return vdupq_n_s32(bits);
  }
  template <bool kSigned>
  static I dot(I sum, Codes codes, I x) {
    return vdotq_s32(sum, codes, vreinterpretq_s8_s32(x));
  }
  static I start(const Q8Block&) { return zero_integers(); }
  static I start_first_half(const Q8Block&) { return zero_integers(); }
  static I start_second_half(const Q8Block&, I) { return zero_integers(); }
  static I zero_integers() { return vdupq_n_s32(0); }
  // Sum of two products of 16-bit integers.
  static I dot_pairs(I a, I b) {
    const int16x8_t x = vreinterpretq_s16_s32(a);
    const int16x8_t y = vreinterpretq_s16_s32(b);
    return vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y));
  }
  static I load_integers(const std::uint8_t* p) { return vreinterpretq_s32_u8(vld1q_u8(p)); }

  // Two bfloat16 a lane; the second product is added first. In f32, since the machine's own
  // bfloat16 instructions round otherwise.
  static F dot_bf16(F sum, I weights, I x) {
    return fma(first_bf16(weights), first_bf16(x), fma(second_bf16(weights), second_bf16(x), sum));
  }
  // 16 bytes at `offset` of a row; f16 are rounded.
  template <bool kFromHalves>
  static I load_bf16(const std::uint8_t* const* row, std::size_t offset) {
    const uint8x16_t pairs = vld1q_u8(*row + offset);
    if constexpr (!kFromHalves) return vreinterpretq_s32_u8(pairs);
    const float16x8_t halves = vreinterpretq_f16_u8(pairs);
    return vreinterpretq_s32_u16(vcombine_u16(to_bf16(vcvt_f32_f16(vget_low_f16(halves))),
                                              to_bf16(vcvt_high_f32_f16(halves))));
  }
  static I broadcast_bf16(const std::byte* p) {
    return load_integers(reinterpret_cast<const std::uint8_t*>(p));
  }
  static void store_record(std::uint8_t* record, int v, I x) {
    vst1q_u8(record + 16 * v, vreinterpretq_u8_s32(x));
  }
  // The sums of four rows' lanes, folded until one is left.
  template <std::uint32_t kTokens>
  static void store_bf16_sums(const F (&sums)[kTokens][4][2], float* out, std::uint32_t stride) {
    const auto fold = [](F a, F b) {
      return add(vcombine_f32(vget_low_f32(a), vget_low_f32(b)),
                 vcombine_f32(vget_high_f32(a), vget_high_f32(b)));
    };
    for (std::uint32_t t = 0; t < kTokens; ++t) {
      F four[4];
      for (int r = 0; r < 4; ++r) four[r] = add(sums[t][r][0], sums[t][r][1]);
      vst1q_f32(out + t * stride, vpaddq_f32(fold(four[0], four[1]), fold(four[2], four[3])));
    }
  }

 private:
  static F first_bf16(I pair) { return vreinterpretq_f32_s32(vshlq_n_s32(pair, 16)); }
  static F second_bf16(I pair) {
    return vreinterpretq_f32_s32(vandq_s32(pair, vdupq_n_s32(static_cast<int>(0xFFFF0000U))));
  }
};

}  // namespace
}  // namespace edgerunner::cpu
