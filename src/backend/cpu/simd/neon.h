#pragma once

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

// Four floats, for the algorithms that are written once over `Simd`. Needs no more than the base
// architecture of arm64.
namespace edgerunner::cpu {
namespace {

struct Simd {
  using Vector = float32x4_t;
  static constexpr int kLanes = 4;
  // 6 rows x 4 vectors of sums, 4 vectors of the shared operand, 1 broadcast: 29 of 32 registers.
  static constexpr int kPanelVectors = 4;

  static Vector load(const float* from) { return vld1q_f32(from); }
  static Vector load(const std::uint16_t* from) {
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from)));
  }
  static Vector load(const std::int8_t* from) {
    std::int32_t four = 0;
    std::memcpy(&four, from, sizeof(four));
    const int16x8_t words = vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four)));
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(words)));
  }
  static void store(float* to, Vector x) { vst1q_f32(to, x); }
  // Rounds to the nearest half, ties to even.
  static void store(std::uint16_t* to, Vector x) {
    vst1_u16(to, vreinterpret_u16_f16(vcvt_f16_f32(x)));
  }
  // x is whole, from -128 to 127.
  static void store(std::int8_t* to, Vector x) {
    const int16x4_t words = vmovn_s32(vcvtq_s32_f32(x));
    const int8x8_t bytes = vmovn_s16(vcombine_s16(words, words));
    const std::int32_t four = vget_lane_s32(vreinterpret_s32_s8(bytes), 0);
    std::memcpy(to, &four, sizeof(four));
  }
  static Vector broadcast(float x) { return vdupq_n_f32(x); }
  static Vector add(Vector a, Vector b) { return vaddq_f32(a, b); }
  static Vector sub(Vector a, Vector b) { return vsubq_f32(a, b); }
  static Vector mul(Vector a, Vector b) { return vmulq_f32(a, b); }
  static Vector div(Vector a, Vector b) { return vdivq_f32(a, b); }
  static Vector fma(Vector a, Vector b, Vector c) { return vfmaq_f32(c, a, b); }
  // min and max give b where a is not a number; the machine's own would give a.
  static Vector min(Vector a, Vector b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
  static Vector max(Vector a, Vector b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
  static Vector absolute(Vector x) { return vabsq_f32(x); }
  static Vector round(Vector x) { return vrndnq_f32(x); }
  // x * 2^n where exponent >= least, else 0; n whole and at least -125, x in [0.5, 2].
  static Vector scale_by_power(Vector x, Vector n, Vector exponent, Vector least) {
    const int32x4_t shifted = vshlq_n_s32(vcvtq_s32_f32(n), 23);
    const int32x4_t scaled = vaddq_s32(vreinterpretq_s32_f32(x), shifted);
    const uint32x4_t drop = vcltq_f32(exponent, least);
    return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_s32(scaled), drop));
  }
  // Lanes begin to end - 1 of x, the others of `other`.
  static Vector select(Vector x, Vector other, int begin, int end) {
    constexpr std::int32_t kLaneNumbers[kLanes] = {0, 1, 2, 3};
    const int32x4_t lane = vld1q_s32(kLaneNumbers);
    const uint32x4_t keep =
        vandq_u32(vcgeq_s32(lane, vdupq_n_s32(begin)), vcltq_s32(lane, vdupq_n_s32(end)));
    return vbslq_f32(keep, x, other);
  }
  static Vector swap_pairs(Vector x) { return vrev64q_f32(x); }
  static float sum(Vector x) {
    const float32x2_t half = vadd_f32(vget_low_f32(x), vget_high_f32(x));
    return vget_lane_f32(half, 0) + vget_lane_f32(half, 1);
  }
  static float largest(Vector x) {
    const float first =
        vgetq_lane_f32(x, 0) > vgetq_lane_f32(x, 2) ? vgetq_lane_f32(x, 0) : vgetq_lane_f32(x, 2);
    const float second =
        vgetq_lane_f32(x, 1) > vgetq_lane_f32(x, 3) ? vgetq_lane_f32(x, 1) : vgetq_lane_f32(x, 3);
    return first > second ? first : second;
  }
  static float square_root(float x) { return vget_lane_f32(vsqrt_f32(vdup_n_f32(x)), 0); }
};

}  // namespace
}  // namespace edgerunner::cpu
