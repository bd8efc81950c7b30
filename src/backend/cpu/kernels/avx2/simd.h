#pragma once

// The vector operations that the panel algorithm is written over, on AVX2 with FMA and F16C.
// Included by translation units of this instruction set only.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backend/cpu/kernels/avx2/transpose.h"
#include "backend/cpu/kernels/codes.h"
#include "backend/cpu/kernels/q8_block.h"
#include "backend/cpu/kernels/scratch.h"

namespace edgerunner::cpu {
namespace {

struct Avx2 {
  using F = __m256;
  using I = __m256i;
  static constexpr int kLanes = 8;
  // 16 registers: 4 integer and 4 float accumulators leave 8 for codes, their magnitudes and what
  // the products of bytes go through.
  static constexpr int kPanels = 1;
  static constexpr int kTokens = 4;
  static constexpr int kTokensHalves = 3;  // of CodeForm::half_scales, which holds a third set
  // Weight rows and rows of activations of a bfloat16 tile: 4 x 2 sums leave 8 registers for both
  // halves of the pairs of the activations and of a row.
  static constexpr int kBf16Vectors = 4;
  static constexpr std::uint32_t kBf16Tokens = kAvx2Bf16Tokens;

  static F zero() { return _mm256_setzero_ps(); }
  static F set(float x) { return _mm256_set1_ps(x); }
  static F load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, F x) { _mm256_storeu_ps(p, x); }
  static F load_first(const float* p, std::uint32_t count) {
    return _mm256_maskload_ps(p, first(count));
  }
  static void store_first(float* p, F x, std::uint32_t count) {
    _mm256_maskstore_ps(p, first(count), x);
  }
  static F add(F a, F b) { return _mm256_add_ps(a, b); }
  static F sub(F a, F b) { return _mm256_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F div(F a, F b) { return _mm256_div_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static F max(F a, F b) { return _mm256_max_ps(a, b); }
  static F min(F a, F b) { return _mm256_min_ps(a, b); }
  static F negate(F a) { return _mm256_xor_ps(a, _mm256_set1_ps(-0.0F)); }
  static F power_of_two(F shifted) {
    return as_float(
        _mm256_add_epi32(_mm256_slli_epi32(_mm256_castps_si256(shifted), 23), set32(127 << 23)));
  }
  static F to_float(I a) { return _mm256_cvtepi32_ps(a); }

  // Four codes a lane, against the same four activations in every lane. Products of bytes are added
  // in pairs to 16 bits, saturating: signed weights take part as magnitudes of at most 128, with
  // their signs put on the activations, so that no pair exceeds 2 * 128 * 127.
  struct Codes {
    I weights;  // as they are; used where signed
    I magnitudes;
  };
  template <bool kSigned>
  static Codes load_codes(const std::uint8_t* p) {
    const I codes = load_integers(p);
    if constexpr (!kSigned) return {codes, codes};
    const I weights = _mm256_xor_si256(codes, _mm256_set1_epi8(static_cast<char>(kCodeOffset)));
    return {weights, _mm256_abs_epi8(weights)};
  }
  static I broadcast(const void* four_bytes) {
    std::int32_t bits = 0;
    std::memcpy(&bits, four_bytes, sizeof bits);
    return _mm256_set1_epi32(bits);
  }
  template <bool kSigned>
  static I dot(I sum, const Codes& codes, I x) {
    if constexpr (kSigned) x = _mm256_sign_epi8(x, codes.weights);
    const I pairs = _mm256_maddubs_epi16(codes.magnitudes, x);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
  static I start(const Q8Block&) { return zero_integers(); }
  static I start_first_half(const Q8Block&) { return zero_integers(); }
  static I start_second_half(const Q8Block&, I) { return zero_integers(); }
  static I zero_integers() { return _mm256_setzero_si256(); }
  // Sum of two products of 16-bit integers.
  static I dot_pairs(I a, I b) { return _mm256_madd_epi16(a, b); }
  static I load_integers(const std::uint8_t* p) {
    return _mm256_load_si256(reinterpret_cast<const I*>(p));
  }

  // Two bfloat16 a lane; the second product is added first.
  static F dot_bf16(F sum, I weights, I x) {
    const I high = set32(static_cast<int>(0xFFFF0000U));
    sum = fma(as_float(bit_and(weights, high)), as_float(bit_and(x, high)), sum);
    return fma(as_float(_mm256_slli_epi32(weights, 16)), as_float(_mm256_slli_epi32(x, 16)), sum);
  }
  // 32 bytes at `offset` of a row; f16 are rounded.
  template <bool kFromHalves>
  static I load_bf16(const std::uint8_t* const* row, std::size_t offset) {
    const I pairs = _mm256_loadu_si256(reinterpret_cast<const I*>(*row + offset));
    if constexpr (!kFromHalves) return pairs;
    return _mm256_set_m128i(to_bf16(_mm256_cvtph_ps(_mm256_extracti128_si256(pairs, 1))),
                            to_bf16(_mm256_cvtph_ps(_mm256_castsi256_si128(pairs))));
  }
  static I broadcast_bf16(const std::byte* p) {
    return _mm256_loadu_si256(reinterpret_cast<const I*>(p));
  }
  // The sums of four rows' lanes, folded until one is left.
  template <std::uint32_t kTokens>
  static void store_bf16_sums(const F (&sums)[kTokens][4][1], float* out, std::uint32_t stride) {
    const auto fold = [](F a, F b) {
      return add(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
    };
    for (std::uint32_t t = 0; t < kTokens; ++t) {
      const F a = fold(sums[t][0][0], sums[t][1][0]);
      const F b = fold(sums[t][2][0], sums[t][3][0]);
      const F two = add(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xEE));
      const F one = add(_mm256_shuffle_ps(two, two, 0x88), _mm256_shuffle_ps(two, two, 0xDD));
      // rows 0 and 2 in the lower half, 1 and 3 in the upper
      _mm_storeu_ps(out + t * stride,
                    _mm_unpacklo_ps(_mm256_castps256_ps128(one), _mm256_extractf128_ps(one, 1)));
    }
  }

  // Lanes of 8, 16 and 32 bits, for unpacking.
  static I set8(int x) { return _mm256_set1_epi8(static_cast<char>(x)); }
  static I set32(int x) { return _mm256_set1_epi32(x); }
  static I bit_and(I a, I b) { return _mm256_and_si256(a, b); }
  static I bit_or(I a, I b) { return _mm256_or_si256(a, b); }
  static I bit_xor(I a, I b) { return _mm256_xor_si256(a, b); }
  static I add8(I a, I b) { return _mm256_add_epi8(a, b); }
  static I sub8(I a, I b) { return _mm256_sub_epi8(a, b); }
  static I add32(I a, I b) { return _mm256_add_epi32(a, b); }
  static I sub32(I a, I b) { return _mm256_sub_epi32(a, b); }
  static I abs32(I a) { return _mm256_abs_epi32(a); }
  static I mul16(I a, I b) { return _mm256_mullo_epi16(a, b); }
  static I shl16(I a, int n) { return _mm256_sll_epi16(a, _mm_cvtsi32_si128(n)); }
  static I shr16(I a, int n) { return _mm256_srl_epi16(a, _mm_cvtsi32_si128(n)); }
  static I shl32(I a, int n) { return _mm256_sll_epi32(a, _mm_cvtsi32_si128(n)); }
  static I shr32(I a, int n) { return _mm256_srl_epi32(a, _mm_cvtsi32_si128(n)); }
  static I sar32(I a, int n) { return _mm256_sra_epi32(a, _mm_cvtsi32_si128(n)); }
  static I shl32_by(I a, I n) { return _mm256_sllv_epi32(a, n); }
  using Mask = I;
  static Mask greater(I a, I b) { return _mm256_cmpgt_epi32(a, b); }
  static I select(Mask which, I yes, I no) { return _mm256_blendv_epi8(no, yes, which); }
  static F as_float(I a) { return _mm256_castsi256_ps(a); }
  // A table of 16 bytes, and its entry for each byte (below 16).
  static I table(const std::int8_t* values) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(values)));
  }
  static I lookup(I entries, I index) { return _mm256_shuffle_epi8(entries, index); }
  // Byte `n` of each lane in all four of its bytes.
  static I repeat_byte(I a, int n) {
    const I lanes =
        _mm256_broadcastsi128_si256(_mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0C0C0C0C));
    return _mm256_shuffle_epi8(a, add32(lanes, set32(0x01010101 * n)));
  }
  // 16 in byte b of each lane that has bit 4 * half + b in that byte, else 0.
  static I sixteen_where(I a, int half) {
    const I mask = set32(half == 0 ? 0x08040201 : static_cast<int>(0x80402010U));
    return bit_and(_mm256_cmpeq_epi8(bit_and(a, mask), mask), set8(16));
  }
  // The f16 in the low half of each lane.
  static F low_half(I a) {
    const I words = _mm256_packus_epi32(bit_and(a, set32(0xFFFF)), zero_integers());
    return _mm256_cvtph_ps(
        _mm_unpacklo_epi64(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
  }

  static void store_record(std::uint8_t* record, int v, I x) {
    _mm256_store_si256(reinterpret_cast<I*>(record + 32 * v), x);
  }
  static void store_record(std::uint8_t* record, int v, F x) {
    _mm256_store_ps(reinterpret_cast<float*>(record + 32 * v), x);
  }

  // 16 bytes at `offset` of each row, as four vectors of 32-bit columns.
  [[gnu::always_inline]] static void load_columns4(const std::uint8_t* const* rows,
                                                   std::size_t offset, I* out) {
    I in[4];  // half j of in[i] is row 4j + i
    for (int i = 0; i < 4; ++i) {
      in[i] = _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(rows[4 + i] + offset),
                                  reinterpret_cast<const __m128i*>(rows[i] + offset));
    }
    transpose_within_halves(in, out);
  }
  // 32 bytes, as eight.
  [[gnu::always_inline]] static void load_columns8(const std::uint8_t* const* rows,
                                                   std::size_t offset, I* out) {
    load_columns4(rows, offset, out);
    load_columns4(rows, offset + 16, out + 4);
  }
  // A square of floats: lane l of out[i] is rows[l][i].
  static void transpose(const float* rows, F out[8]) {
    I in[8];
    I columns[8];
    for (int r = 0; r < 8; ++r) {
      in[r] = load_integers(reinterpret_cast<const std::uint8_t*>(rows + 8 * r));
    }
    transpose8(in, columns);
    for (int c = 0; c < 8; ++c) out[c] = as_float(columns[c]);
  }
  // `into`, but with lanes lane[l] of `from` in its lanes l from `first` on, `count` of them.
  static F select_lanes(F into, F from, const std::int32_t* lane, int first, int count) {
    const I lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const I inside =
        bit_and(greater(lanes, set32(first - 1)), greater(set32(first + count), lanes));
    const F picked =
        _mm256_permutevar8x32_ps(from, _mm256_loadu_si256(reinterpret_cast<const I*>(lane)));
    return _mm256_blendv_ps(into, picked, as_float(inside));
  }
  // As many 32-bit columns as lanes, of which `count` are there; the others are zero.
  static void load_square(const std::uint8_t* const* rows, std::size_t offset, std::uint32_t count,
                          I* out) {
    I in[8];
    for (int r = 0; r < 8; ++r) {
      in[r] = _mm256_maskload_epi32(reinterpret_cast<const int*>(rows[r] + offset), first(count));
    }
    transpose8(in, out);
  }
  // 32 bits at `offset` of each row.
  static I load_column(const std::uint8_t* const* rows, std::size_t offset) {
    std::int32_t words[8];
    for (int r = 0; r < 8; ++r) std::memcpy(&words[r], rows[r] + offset, 4);
    return _mm256_setr_epi32(words[0], words[1], words[2], words[3], words[4], words[5], words[6],
                             words[7]);
  }
  // The f16 at byte kAt of four blocks of kBytes each.
  template <int kBytes, int kAt>
  static void load_block_halves(const std::uint8_t* const* rows, std::size_t offset, F* out) {
    for (int b = 0; b < 4; ++b) {
      std::uint16_t words[8];
      for (int r = 0; r < 8; ++r) {
        std::memcpy(&words[r], rows[r] + offset + b * kBytes + kAt, sizeof words[r]);
      }
      const auto word = [&](int r) { return static_cast<short>(words[r]); };
      out[b] = _mm256_cvtph_ps(
          _mm_setr_epi16(word(0), word(1), word(2), word(3), word(4), word(5), word(6), word(7)));
    }
  }
  // The first byte of four blocks.
  template <int kBytes>
  static void load_block_bytes(const std::uint8_t* const* rows, std::size_t offset, I* out) {
    for (int b = 0; b < 4; ++b) {
      const auto byte = [&](int r) { return static_cast<int>(rows[r][offset + b * kBytes]); };
      out[b] =
          _mm256_setr_epi32(byte(0), byte(1), byte(2), byte(3), byte(4), byte(5), byte(6), byte(7));
    }
  }
  // To nearest, ties to even; subnormal numbers become zero, NaN stays NaN.
  static __m128i to_bf16(F x) {
    const I bits = _mm256_castps_si256(x);
    const I magnitude = bit_and(bits, set32(0x7FFFFFFF));
    const I odd = bit_and(_mm256_srli_epi32(bits, 16), set32(1));
    I rounded = _mm256_srli_epi32(add32(add32(bits, set32(0x7FFF)), odd), 16);
    const I quiet = bit_or(_mm256_srli_epi32(bits, 16), set32(0x40));
    rounded = select(greater(magnitude, set32(0x7F800000)), quiet, rounded);
    const I sign = bit_and(_mm256_srli_epi32(bits, 16), set32(0x8000));
    rounded = select(greater(set32(0x00800000), magnitude), sign, rounded);
    const I words = _mm256_packus_epi32(rounded, zero_integers());
    return _mm_unpacklo_epi64(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  }

 private:
  static I first(std::uint32_t count) {
    const int n = count >= 8 ? 8 : static_cast<int>(count);
    return greater(set32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
};

}  // namespace
}  // namespace edgerunner::cpu
