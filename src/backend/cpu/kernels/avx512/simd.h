#pragma once

// The vector operations that the panel algorithm is written over, on AVX-512 with VNNI and BF16.
// Included by translation units of this instruction set only.

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "backend/cpu/kernels/avx512/transpose.h"
#include "backend/cpu/kernels/codes.h"
#include "backend/cpu/kernels/q8_block.h"
#include "backend/cpu/kernels/scratch.h"

namespace edgerunner::cpu {
namespace {

struct Avx512 {
  using F = __m512;
  using I = __m512i;
  static constexpr int kLanes = 16;
  // 32 registers: 2 x 6 integer and 2 x 6 float accumulators leave 8 for operands, and two panel
  // rows share each broadcast of an activation.
  static constexpr int kPanels = 2;
  static constexpr int kTokens = 6;
  static constexpr int kTokensHalves = 4;  // of CodeForm::half_scales, which holds a third set
  // Vectors of weight rows and rows of activations of a bfloat16 tile: 4 x 6 sums leave 8 registers
  // for the activations and a vector of weights.
  static constexpr int kBf16Vectors = 4;
  static constexpr std::uint32_t kBf16Tokens = kAvx512Bf16Tokens;

  static F zero() { return _mm512_setzero_ps(); }
  static F set(float x) { return _mm512_set1_ps(x); }
  static F load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, F x) { _mm512_storeu_ps(p, x); }
  static F load_first(const float* p, std::uint32_t count) {
    return _mm512_maskz_loadu_ps(first(count), p);
  }
  static void store_first(float* p, F x, std::uint32_t count) {
    _mm512_mask_storeu_ps(p, first(count), x);
  }
  static F add(F a, F b) { return _mm512_add_ps(a, b); }
  static F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F div(F a, F b) { return _mm512_div_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F max(F a, F b) { return _mm512_max_ps(a, b); }
  static F min(F a, F b) { return _mm512_min_ps(a, b); }
  static F negate(F a) {
    return _mm512_castsi512_ps(
        _mm512_xor_si512(_mm512_castps_si512(a), _mm512_set1_epi32(INT32_MIN)));
  }
  static F power_of_two(F shifted) {
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_slli_epi32(_mm512_castps_si512(shifted), 23),
                                                _mm512_set1_epi32(127 << 23)));
  }
  static F to_float(I a) { return _mm512_cvtepi32_ps(a); }

  // Four codes a lane, against the same four activations in every lane.
  using Codes = __m512i;
  template <bool kSigned>
  static Codes load_codes(const std::uint8_t* p) {
    return _mm512_load_si512(p);
  }
  static I broadcast(const void* four_bytes) {
    std::int32_t bits = 0;
    std::memcpy(&bits, four_bytes, sizeof bits);
    return _mm512_set1_epi32(bits);
  }
  template <bool kSigned>
  static I dot(I sum, Codes codes, I x) {
    return _mm512_dpbusd_epi32(sum, codes, x);
  }
  // The same with four activations where they are. As an instruction, for compilers load them by
  // one of their own, and with so many results under way the next block's begin later.
  static I dot_broadcast(I sum, Codes codes, const void* four_bytes) {
    asm("vpdpbusd %2%{1to16%}, %1, %0"
        : "+v"(sum)
        : "v"(codes), "m"(*static_cast<const std::int32_t*>(four_bytes)));
    return sum;
  }
  // What an integer sum begins with: undoes the offset of signed codes.
  static I start(const Q8Block& x) { return _mm512_set1_epi32(x.start); }
  static I start_first_half(const Q8Block& x) {
    return _mm512_dpwssd_epi32(_mm512_setzero_si512(), broadcast(x.half_sum),
                               _mm512_set1_epi32(-kCodeOffset & 0xFFFF));
  }
  static I start_second_half(const Q8Block& x, I first) {
    return _mm512_sub_epi32(start(x), first);
  }
  static I zero_integers() { return _mm512_setzero_si512(); }
  // Sum of two products of 16-bit integers.
  static I dot_pairs(I a, I b) { return _mm512_dpwssd_epi32(_mm512_setzero_si512(), a, b); }
  static I load_integers(const std::uint8_t* p) { return _mm512_load_si512(p); }

  // Two bfloat16 a lane; the second product is added first.
  static F dot_bf16(F sum, I weights, I x) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(weights),
                            reinterpret_cast<__m512bh>(x));
  }
  // 32 bytes at `offset` of each of two rows; f16 are rounded.
  template <bool kFromHalves>
  [[gnu::always_inline]] static I load_bf16(const std::uint8_t* const* rows, std::size_t offset) {
    const auto row = [&](int r) __attribute__((always_inline)) {
      return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[r] + offset));
    };
    if constexpr (kFromHalves) {
      return reinterpret_cast<I>(
          _mm512_cvtne2ps_pbh(_mm512_cvtph_ps(row(1)), _mm512_cvtph_ps(row(0))));
    }
    return _mm512_inserti64x4(_mm512_castsi256_si512(row(0)), row(1), 1);
  }
  // 32 bytes for both.
  static I broadcast_bf16(const std::byte* p) {
    return _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  // Four vectors have the eight sums of two rows each, which are folded until one is left.
  template <std::uint32_t kTokens>
  [[gnu::always_inline]] static void store_bf16_sums(const F (&sums)[kTokens][4][1], float* out,
                                                     std::uint32_t stride) {
    // The two sums left of each row: of rows q and 4 + q in quarter q.
    const auto two = [&](std::uint32_t t) __attribute__((always_inline)) {
      const auto fold = [](F a, F b) {
        return add(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xDD));
      };
      const F a = fold(sums[t][0][0], sums[t][1][0]);
      const F b = fold(sums[t][2][0], sums[t][3][0]);
      return add(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xEE));
    };
    const I order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
#pragma GCC unroll 8
    for (std::uint32_t t = 0; t < kTokens; t += 2) {
      const F a = two(t);
      const F b = t + 1 < kTokens ? two(t + 1) : a;
      const F both = add(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xDD));
      const F rows = _mm512_permutexvar_ps(order, both);
      _mm256_storeu_ps(out + t * stride, _mm512_castps512_ps256(rows));
      if (t + 1 < kTokens) {
        _mm256_storeu_ps(out + (t + 1) * stride, _mm512_extractf32x8_ps(rows, 1));
      }
    }
  }

  // Lanes of 8, 16 and 32 bits, for unpacking.
  static I set8(int x) { return _mm512_set1_epi8(static_cast<char>(x)); }
  static I set32(int x) { return _mm512_set1_epi32(x); }
  static I bit_and(I a, I b) { return _mm512_and_si512(a, b); }
  static I bit_or(I a, I b) { return _mm512_or_si512(a, b); }
  static I bit_xor(I a, I b) { return _mm512_xor_si512(a, b); }
  static I add8(I a, I b) { return _mm512_add_epi8(a, b); }
  static I sub8(I a, I b) { return _mm512_sub_epi8(a, b); }
  static I add32(I a, I b) { return _mm512_add_epi32(a, b); }
  static I sub32(I a, I b) { return _mm512_sub_epi32(a, b); }
  static I abs32(I a) { return _mm512_abs_epi32(a); }
  static I mul16(I a, I b) { return _mm512_mullo_epi16(a, b); }
  static I shl16(I a, int n) { return _mm512_sll_epi16(a, _mm_cvtsi32_si128(n)); }
  static I shr16(I a, int n) { return _mm512_srl_epi16(a, _mm_cvtsi32_si128(n)); }
  static I shl32(I a, int n) { return _mm512_sll_epi32(a, _mm_cvtsi32_si128(n)); }
  static I shr32(I a, int n) { return _mm512_srl_epi32(a, _mm_cvtsi32_si128(n)); }
  static I sar32(I a, int n) { return _mm512_sra_epi32(a, _mm_cvtsi32_si128(n)); }
  static I shl32_by(I a, I n) { return _mm512_sllv_epi32(a, n); }
  using Mask = __mmask16;
  static Mask greater(I a, I b) { return _mm512_cmpgt_epi32_mask(a, b); }
  static I select(Mask which, I yes, I no) { return _mm512_mask_blend_epi32(which, no, yes); }
  static F as_float(I a) { return _mm512_castsi512_ps(a); }
  // A table of 16 bytes, and its entry for each byte (below 16).
  static I table(const std::int8_t* values) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(values)));
  }
  static I lookup(I entries, I index) { return _mm512_shuffle_epi8(entries, index); }
  // Byte `n` of each lane in all four of its bytes.
  static I repeat_byte(I a, int n) {
    return _mm512_shuffle_epi8(a, _mm512_add_epi32(_mm512_broadcast_i32x4(_mm_setr_epi32(
                                                       0, 0x04040404, 0x08080808, 0x0C0C0C0C)),
                                                   _mm512_set1_epi32(0x01010101 * n)));
  }
  // 16 in byte b of each lane that has bit 4 * half + b in that byte, else 0.
  static I sixteen_where(I a, int half) {
    const I bits = set32(half == 0 ? 0x08040201 : static_cast<int>(0x80402010U));
    return _mm512_maskz_mov_epi8(_mm512_test_epi8_mask(a, bits), _mm512_set1_epi8(16));
  }
  // The same in more instructions, but without masks, whose are the ports of products.
  static I sixteen_by_table(I a, int half) {
    const std::int8_t values[16] = {0, 16, 16, 0, 16, 0, 0, 0, 16};
    if (half != 0) a = shr16(a, 4);
    return lookup(table(values), bit_and(a, set32(0x08040201)));
  }
  // The f16 in the low half of each lane.
  static F low_half(I a) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(a)); }

  static void store_record(std::uint8_t* record, int v, I x) {
    _mm512_store_si512(record + 64 * v, x);
  }
  static void store_record(std::uint8_t* record, int v, F x) {
    _mm512_store_ps(record + 64 * v, x);
  }

  // 16 bytes at `offset` of each row, as four vectors of 32-bit columns.
  template <class Rows>
  [[gnu::always_inline]] static void load_columns4(const Rows& rows, std::size_t offset, I* out) {
    edgerunner::cpu::load_columns4(rows, offset, out);
  }
  // 32 bytes, as eight.
  template <class Rows>
  [[gnu::always_inline]] static void load_columns8(const Rows& rows, std::size_t offset, I* out) {
    edgerunner::cpu::load_columns8(rows, offset, out);
  }
  using Columns4InParts = edgerunner::cpu::Columns4InParts;
  using Columns8InParts = edgerunner::cpu::Columns8InParts;
  // A square of floats: lane l of out[i] is rows[l][i].
  [[gnu::always_inline]] static void transpose(const float* rows, F out[16]) {
    I columns[16];
    const auto row = [&](int r) __attribute__((always_inline)) {
      return _mm512_load_si512(rows + 16 * r);
    };
    transpose_square(row, columns);
#pragma GCC unroll 16
    for (int c = 0; c < 16; ++c) out[c] = as_float(columns[c]);
  }
  // `into`, but with lanes lane[l] of `from` in its lanes l from `first` on, `count` of them.
  static F select_lanes(F into, F from, const std::int32_t* lane, int first, int count) {
    return _mm512_mask_permutexvar_ps(into, static_cast<__mmask16>(((1U << count) - 1) << first),
                                      _mm512_loadu_si512(lane), from);
  }
  // As many 32-bit columns as lanes, of which `count` are there; the others are zero.
  static void load_square(const std::uint8_t* const* rows, std::size_t offset, std::uint32_t count,
                          I* out) {
    const __mmask16 there = first(count);
    const auto row = [&](int r) __attribute__((always_inline)) {
      return _mm512_maskz_loadu_epi32(there, rows[r] + offset);
    };
    transpose_square(row, out);
  }
  // 32 bits at `offset` of each row.
  template <class Rows>
  static I load_column(const Rows& rows, std::size_t offset) {
    std::int32_t words[16];
    for (int r = 0; r < 16; ++r) std::memcpy(&words[r], rows[r] + offset, 4);
    return _mm512_setr_epi32(words[0], words[1], words[2], words[3], words[4], words[5], words[6],
                             words[7], words[8], words[9], words[10], words[11], words[12],
                             words[13], words[14], words[15]);
  }
  // A word at `offset` of each row, one after the other, without the vector units.
  template <class Word, class Rows>
  [[gnu::always_inline]] static void copy_words(const Rows& rows, std::size_t offset, Word* out) {
#pragma GCC unroll 16
    for (int r = 0; r < kLanes; ++r) {
      Word word;
      std::memcpy(&word, rows[r] + offset, sizeof word);
      asm("" : "+r"(word));  // or else compilers collect the words in a vector
      out[r] = word;
    }
  }
  // 32 bits of every 64 from p on.
  static I every_other(const std::uint8_t* p) {
    const I even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_epi32(_mm512_loadu_si512(p), even, _mm512_loadu_si512(p + 64));
  }
  static F widen_halves(const std::uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static I widen_bytes(const std::uint8_t* p) {
    return _mm512_cvtepu8_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(p)));
  }
  // The f16 at byte kAt of four blocks of kBytes each.
  template <int kBytes, int kAt, class Rows>
  [[gnu::always_inline]] static void load_block_halves(const Rows& rows, std::size_t offset,
                                                       F* out) {
    __m256i words[4];
    load_block_words<kBytes, kAt>(rows, offset, words);
    I groups[4];
    for (int g = 0; g < 4; ++g) groups[g] = _mm512_castps_si512(_mm512_cvtph_ps(words[g]));
    I blocks[4];
    transpose_quarters(groups, blocks);
    for (int b = 0; b < 4; ++b) out[b] = _mm512_castsi512_ps(blocks[b]);
  }
  // The first byte of four blocks of an odd number of bytes each: blocks 1 and 3 begin within a
  // word.
  template <int kBytes, class Rows>
  static void load_block_bytes(const Rows& rows, std::size_t offset, I* out) {
    static_assert(kBytes % 2 == 1);
    __m256i words[4];
    load_block_words<kBytes, 0>(rows, offset, words);
    const I shift = _mm512_setr_epi32(0, 0, 0, 0, 8, 8, 8, 8, 0, 0, 0, 0, 8, 8, 8, 8);
    I groups[4];
    for (int g = 0; g < 4; ++g) {
      groups[g] = bit_and(_mm512_srlv_epi32(_mm512_cvtepu16_epi32(words[g]), shift), set32(0xFF));
    }
    transpose_quarters(groups, out);
  }

 private:
  static __mmask16 first(std::uint32_t count) {
    return count >= 16 ? 0xFFFF : static_cast<__mmask16>((1U << count) - 1);
  }
};

}  // namespace
}  // namespace edgerunner::cpu
