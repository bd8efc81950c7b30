#pragma once

// Unpacks the formats whose blocks hold 32 weights and a scale: four blocks of 16 rows at a time.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/avx512/simd.h"
#include "backend/cpu/kernels/avx512/transpose.h"
#include "backend/cpu/kernels/panel_product.h"
#include "backend/cpu/kernels/unpack_portable.h"

namespace edgerunner::cpu {
namespace {

inline void store_vector(std::uint8_t* record, int v, __m512i x) {
  _mm512_store_si512(record + 64 * v, x);
}
inline void store_vector(std::uint8_t* record, int v, __m512 x) {
  _mm512_store_ps(record + 64 * v, x);
}

// The 16 entries of a table of codes in every quarter.
inline __m512i nibble_table(const std::int8_t (&values)[16]) {
  const __m512i table =
      _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(values)));
  return _mm512_add_epi8(table, _mm512_set1_epi8(static_cast<char>(kCodeOffset)));
}

inline constexpr std::int8_t kQ4Values[16] = {-8, -7, -6, -5, -4, -3, -2, -1,
                                              0,  1,  2,  3,  4,  5,  6,  7};
inline constexpr std::int8_t kIq4CodeValues[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                   1,    13,   25,  38,  53,  69,  89,  113};
inline constexpr std::int8_t kMxfp4CodeValues[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                                     0, -1, -2, -3, -4, -6, -8, -12};

// Low and high nibbles of 16 bytes a row: the first and the second half of a block.
inline void split_nibbles(const std::uint8_t* const* rows, std::size_t offset, __m512i codes[8]) {
  __m512i columns[4];
  load_columns4(rows, offset, columns);
  const __m512i low = _mm512_set1_epi8(0x0F);
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    codes[k] = _mm512_and_si512(columns[k], low);
    codes[4 + k] = _mm512_and_si512(_mm512_srli_epi16(columns[k], 4), low);
  }
}

template <const std::int8_t (&kValues)[16]>
inline void read_table_codes(const std::uint8_t* const* rows, std::size_t offset,
                             __m512i codes[8]) {
  const __m512i table = nibble_table(kValues);
  split_nibbles(rows, offset, codes);
#pragma GCC unroll 8
  for (int k = 0; k < 8; ++k) codes[k] = _mm512_shuffle_epi8(table, codes[k]);
}

// `bits` holds the fifth bits of a row's 32 weights in its lane.
inline void add_fifth_bits(__m512i bits, __m512i codes[8]) {
#pragma GCC unroll 4
  for (int byte = 0; byte < 4; ++byte) {  // of the lane: weights 8 * byte and up
    const __m512i spread = _mm512_shuffle_epi8(
        bits,
        _mm512_broadcast_i32x4(_mm_setr_epi32(0x01010101 * byte, 0x01010101 * (4 + byte),
                                              0x01010101 * (8 + byte), 0x01010101 * (12 + byte))));
    const __m512i sixteen = _mm512_set1_epi8(16);
    codes[2 * byte] = _mm512_mask_add_epi8(
        codes[2 * byte], _mm512_test_epi8_mask(spread, _mm512_set1_epi32(0x08040201)),
        codes[2 * byte], sixteen);
    codes[2 * byte + 1] = _mm512_mask_add_epi8(
        codes[2 * byte + 1],
        _mm512_test_epi8_mask(spread, _mm512_set1_epi32(static_cast<int>(0x80402010U))),
        codes[2 * byte + 1], sixteen);
  }
}

// A 32-bit word of each row; four bytes at `offset`, of any alignment.
inline __m512i load_column(const std::uint8_t* const* rows, std::size_t offset) {
  alignas(64) std::int32_t words[16];
  for (int r = 0; r < 16; ++r) __builtin_memcpy(&words[r], rows[r] + offset, 4);
  return _mm512_setr_epi32(words[0], words[1], words[2], words[3], words[4], words[5], words[6],
                           words[7], words[8], words[9], words[10], words[11], words[12], words[13],
                           words[14], words[15]);
}

struct Q4_0Codes {
  static constexpr int kBytes = 18;
  static constexpr bool kMinimum = false;
  static void read(const std::uint8_t* const* rows, std::size_t block, __m512i codes[8]) {
    read_table_codes<kQ4Values>(rows, block + 2, codes);
  }
};

struct Iq4NlCodes {
  static constexpr int kBytes = 18;
  static constexpr bool kMinimum = false;
  static void read(const std::uint8_t* const* rows, std::size_t block, __m512i codes[8]) {
    read_table_codes<kIq4CodeValues>(rows, block + 2, codes);
  }
};

struct Q4_1Codes {
  static constexpr int kBytes = 20;
  static constexpr bool kMinimum = true;
  static void read(const std::uint8_t* const* rows, std::size_t block, __m512i codes[8]) {
    split_nibbles(rows, block + 4, codes);
  }
};

struct Q5_0Codes {
  static constexpr int kBytes = 22;
  static constexpr bool kMinimum = false;
  static void read(const std::uint8_t* const* rows, std::size_t block, __m512i codes[8]) {
    split_nibbles(rows, block + 6, codes);
    add_fifth_bits(load_column(rows, block + 2), codes);
    for (int k = 0; k < 8; ++k) {
      codes[k] = _mm512_add_epi8(codes[k], _mm512_set1_epi8(kCodeOffset - 16));
    }
  }
};

struct Q5_1Codes {
  static constexpr int kBytes = 24;
  static constexpr bool kMinimum = true;
  static void read(const std::uint8_t* const* rows, std::size_t block, __m512i codes[8]) {
    split_nibbles(rows, block + 8, codes);
    add_fifth_bits(load_column(rows, block + 4), codes);
  }
};

struct Q8_0Codes {
  static constexpr int kBytes = 34;
  static constexpr bool kMinimum = false;
  static void read(const std::uint8_t* const* rows, std::size_t block, __m512i codes[8]) {
    load_columns4(rows, block + 2, codes);
    load_columns4(rows, block + 18, codes + 4);
    for (int k = 0; k < 8; ++k) {
      codes[k] = _mm512_xor_si512(codes[k], _mm512_set1_epi8(static_cast<char>(kCodeOffset)));
    }
  }
};

struct Mxfp4Codes {
  static constexpr int kBytes = 17;
  static constexpr bool kMinimum = false;
  static void read(const std::uint8_t* const* rows, std::size_t block, __m512i codes[8]) {
    read_table_codes<kMxfp4CodeValues>(rows, block + 1, codes);
  }
};

// The 16-bit words that hold byte `kAt` of four consecutive blocks of 16 rows: out[g] has them of
// rows 4g to 4g + 3, row by row within a block. Each row's four blocks are covered by two loads of
// 64 bytes that end within them.
template <int kBytes, int kAt>
inline void load_block_words(const std::uint8_t* const* rows, std::size_t offset, __m256i out[4]) {
  constexpr bool kOneLoad = 3 * kBytes + kAt + 2 <= 64;
  constexpr int kSecond = 2 * kBytes < 4 * kBytes - 64 ? 2 * kBytes : 4 * kBytes - 64;
  constexpr int kBase = kOneLoad ? 0 : kSecond;
  constexpr int kWord0 = kAt / 2;
  constexpr int kWord1 = (kBytes + kAt) / 2;
  constexpr int kWord2 = (2 * kBytes + kAt - kBase) / 2;
  constexpr int kWord3 = (3 * kBytes + kAt - kBase) / 2;
  const auto four = [](int word) { return word * std::int64_t{0x0001000100010001}; };
  const __m512i index =
      _mm512_setr_epi64(four(kWord0), four(kWord1), four(kWord2), four(kWord3), 0, 0, 0, 0);
#pragma GCC unroll 4
  for (int g = 0; g < 4; ++g) {
    __m512i words = _mm512_setzero_si512();
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const std::uint8_t* row = rows[4 * g + i] + offset;
      if constexpr (kOneLoad) {
        words = _mm512_mask_permutexvar_epi16(words, 0x1111U << i, index, _mm512_loadu_si512(row));
      } else {
        words = _mm512_mask_permutexvar_epi16(words, 0x0011U << i, index, _mm512_loadu_si512(row));
        words = _mm512_mask_permutexvar_epi16(words, 0x1100U << i, index,
                                              _mm512_loadu_si512(row + kSecond));
      }
    }
    out[g] = _mm512_castsi512_si256(words);
  }
}

// Float vectors of [block][row] quarters to one vector a block, stored in its record.
inline void store_block_floats(const __m512 groups[4], std::uint8_t* out, std::size_t stride,
                               int v) {
  __m512i in[4];
  for (int g = 0; g < 4; ++g) in[g] = _mm512_castps_si512(groups[g]);
  __m512i blocks[4];
  transpose_quarters(in, blocks);
#pragma GCC unroll 4
  for (int b = 0; b < 4; ++b) store_vector(out + b * stride, v, blocks[b]);
}

template <int kBytes, int kAt>
inline void unpack_half_floats(const std::uint8_t* const* rows, std::size_t offset,
                               std::uint8_t* out, std::size_t stride, int v) {
  __m256i halves[4];
  load_block_words<kBytes, kAt>(rows, offset, halves);
  __m512 groups[4];
  for (int g = 0; g < 4; ++g) groups[g] = _mm512_cvtph_ps(halves[g]);
  store_block_floats(groups, out, stride, v);
}

// MXFP4's exponents: 2^(e - 128), half of what E8M0 says because the codes are doubled.
inline void unpack_exponents(const std::uint8_t* const* rows, std::size_t offset, std::uint8_t* out,
                             std::size_t stride, int v) {
  __m256i words[4];
  load_block_words<Mxfp4Codes::kBytes, 0>(rows, offset, words);
  // Blocks 1 and 3 begin at an odd byte.
  const __m512i shift = _mm512_setr_epi32(0, 0, 0, 0, 8, 8, 8, 8, 0, 0, 0, 0, 8, 8, 8, 8);
  __m512 groups[4];
  for (int g = 0; g < 4; ++g) {
    const __m512i e = _mm512_and_si512(_mm512_srlv_epi32(_mm512_cvtepu16_epi32(words[g]), shift),
                                       _mm512_set1_epi32(0xFF));
    const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    const __m512i subnormal = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);
    __m512i bits = _mm512_mask_blend_epi32(_mm512_cmplt_epu32_mask(e, _mm512_set1_epi32(2)), normal,
                                           subnormal);
    bits = _mm512_mask_blend_epi32(_mm512_cmpeq_epi32_mask(e, _mm512_set1_epi32(255)), bits,
                                   _mm512_set1_epi32(0x7FC00000));
    groups[g] = _mm512_castsi512_ps(bits);
  }
  store_block_floats(groups, out, stride, v);
}

template <class Codes>
inline void unpack_four(const std::uint8_t* const* rows, std::size_t offset, std::uint8_t* out,
                        std::size_t stride) {
#pragma GCC unroll 4
  for (int b = 0; b < 4; ++b) {
    __m512i codes[8];
    Codes::read(rows, offset + b * Codes::kBytes, codes);
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) store_vector(out + b * stride, k, codes[k]);
  }
  if constexpr (Codes::kBytes == Mxfp4Codes::kBytes) {
    unpack_exponents(rows, offset, out, stride, 8);
  } else {
    unpack_half_floats<Codes::kBytes, 0>(rows, offset, out, stride, 8);
    if constexpr (Codes::kMinimum)
      unpack_half_floats<Codes::kBytes, 2>(rows, offset, out, stride, 9);
  }
}

// The last four blocks overlap those before them where the chunk isn't a multiple of four.
template <class Codes>
void unpack_blocks32(const PanelSource<Avx512>& source, std::uint32_t first, std::uint32_t steps,
                     std::uint8_t* out, std::size_t stride, std::byte* temporary) {
  if (steps < 4) return unpack_codes<Avx512>(source, first, steps, out, stride, temporary);
  for (std::uint32_t i = 0; i < steps;) {
    const std::size_t offset = std::size_t{first + i} * Codes::kBytes;
    if (source.ahead != 0) {
      for (const std::uint8_t* row : source.rows) {
        for (int line = 0; line < 4 * Codes::kBytes; line += 64) {
          _mm_prefetch(row + source.ahead + offset + line, _MM_HINT_T0);
        }
      }
    }
    unpack_four<Codes>(source.rows, offset, out + i * stride, stride);
    i += 4;
    if (i < steps && steps - i < 4) i = steps - 4;
  }
}

}  // namespace
}  // namespace edgerunner::cpu
