#pragma once

// Unpacks the formats whose blocks hold 256 weights in sub-blocks with scales of their own, a block
// of 16 rows at a time. With a row a lane, packed scales are unpacked for 16 rows at once.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/avx512/simd.h"
#include "backend/cpu/kernels/avx512/transpose.h"
#include "backend/cpu/kernels/avx512/unpack_blocks32.h"
#include "backend/cpu/kernels/panel_product.h"

namespace edgerunner::cpu {
namespace {

// The f16 in the low or high half of each lane.
inline __m512 low_half(__m512i lanes) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(lanes)); }
inline __m512 high_half(__m512i lanes) { return low_half(_mm512_srli_epi32(lanes, 16)); }

inline __m512i bytes_and(__m512i x, int mask) {
  return _mm512_and_si512(x, _mm512_set1_epi8(static_cast<char>(mask)));
}

// Byte j of each lane, as unsigned and as signed integer.
inline __m512i byte_of(__m512i lanes, int j) {
  return _mm512_and_si512(_mm512_srli_epi32(lanes, 8 * j), _mm512_set1_epi32(0xFF));
}
inline __m512i signed_byte_of(__m512i lanes, int j) {
  return _mm512_srai_epi32(_mm512_slli_epi32(lanes, 24 - 8 * j), 24);
}

// PackedScales of Q4_K and Q5_K, by the block's first 16 bytes.
struct ScalesAndMinima {
  __m512 d;
  __m512 dmin;        // negated
  __m512i scales[2];  // of sub-blocks 0 to 3 and 4 to 7, a byte each
  __m512i minima[2];

  ScalesAndMinima(const std::uint8_t* const* rows, std::size_t block) {
    __m512i head[4];
    load_columns4(rows, block, head);
    d = low_half(head[0]);
    dmin = Avx512::negate(high_half(head[0]));
    scales[0] = bytes_and(head[1], 63);
    minima[0] = bytes_and(head[2], 63);
    scales[1] =
        _mm512_or_si512(bytes_and(head[3], 0x0F), bytes_and(_mm512_srli_epi16(head[1], 2), 0x30));
    minima[1] = _mm512_or_si512(bytes_and(_mm512_srli_epi16(head[3], 4), 0x0F),
                                bytes_and(_mm512_srli_epi16(head[2], 2), 0x30));
  }
  void store(std::uint8_t* record, int j) const {
    store_vector(record, 8, _mm512_mul_ps(d, _mm512_cvtepi32_ps(byte_of(scales[j / 4], j % 4))));
    store_vector(record, 9, _mm512_mul_ps(dmin, _mm512_cvtepi32_ps(byte_of(minima[j / 4], j % 4))));
  }
};

struct Q4KBlock {
  static constexpr int kBytes = 144;
  static void unpack(const std::uint8_t* const* rows, std::size_t block, std::uint8_t* out,
                     std::size_t stride) {
    const ScalesAndMinima scales(rows, block);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) scales.store(out + j * stride, j);
    for (int pair = 0; pair < 4; ++pair) {
      std::uint8_t* record = out + 2 * pair * stride;
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        __m512i columns[4];
        load_columns4(rows, block + 16 + 32 * pair + 16 * half, columns);
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) {
          store_vector(record, 4 * half + k, bytes_and(columns[k], 0x0F));
          store_vector(record + stride, 4 * half + k,
                       bytes_and(_mm512_srli_epi16(columns[k], 4), 0x0F));
        }
      }
    }
  }
};

struct Q5KBlock {
  static constexpr int kBytes = 176;
  static void unpack(const std::uint8_t* const* rows, std::size_t block, std::uint8_t* out,
                     std::size_t stride) {
    const ScalesAndMinima scales(rows, block);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) scales.store(out + j * stride, j);
    __m512i high[8];  // bit j: of sub-block j
    load_columns4(rows, block + 16, high);
    load_columns4(rows, block + 32, high + 4);
#pragma GCC unroll 4
    for (int pair = 0; pair < 4; ++pair) {
      std::uint8_t* record = out + 2 * pair * stride;
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        __m512i columns[4];
        load_columns4(rows, block + 48 + 32 * pair + 16 * half, columns);
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) {
          __m512i& bits = high[4 * half + k];  // of this pair in bits 0 and 1
          store_vector(record, 4 * half + k,
                       _mm512_or_si512(bytes_and(columns[k], 0x0F),
                                       bytes_and(_mm512_slli_epi16(bits, 4), 0x10)));
          store_vector(record + stride, 4 * half + k,
                       _mm512_or_si512(bytes_and(_mm512_srli_epi16(columns[k], 4), 0x0F),
                                       bytes_and(_mm512_slli_epi16(bits, 3), 0x10)));
          bits = _mm512_srli_epi16(bits, 2);
        }
      }
    }
  }
};

struct Q6KBlock {
  static constexpr int kBytes = 210;
  static void unpack(const std::uint8_t* const* rows, std::size_t block, std::uint8_t* out,
                     std::size_t stride) {
    __m512i tail[4];  // ends with the block's last bytes: a scale more, and d
    load_columns4(rows, block + kBytes - 16, tail);
    const __m512 d = high_half(tail[3]);
    __m512i scales[4];
    load_columns4(rows, block + 192, scales);
#pragma GCC unroll 16
    for (int j = 0; j < 16; ++j) {
      store_vector(out + j / 2 * stride, 8 + j % 2,
                   _mm512_mul_ps(d, _mm512_cvtepi32_ps(signed_byte_of(scales[j / 4], j % 4))));
    }
    const __m512i offset = _mm512_set1_epi8(kCodeOffset - 32);
    for (int h = 0; h < 2; ++h) {
      std::uint8_t* record = out + 4 * h * stride;
      for (int half = 0; half < 2; ++half) {
        __m512i high[4];
        load_columns4(rows, block + 128 + 32 * h + 16 * half, high);
        for (int part = 0; part < 2; ++part) {  // low nibbles: sub-block `part`, high: part + 2
          __m512i columns[4];
          load_columns4(rows, block + 64 * h + 32 * part + 16 * half, columns);
#pragma GCC unroll 4
          for (int k = 0; k < 4; ++k) {
            const __m512i bits = _mm512_srl_epi16(high[k], _mm_cvtsi32_si128(2 * part));
            const __m512i first = _mm512_or_si512(bytes_and(columns[k], 0x0F),
                                                  bytes_and(_mm512_slli_epi16(bits, 4), 0x30));
            const __m512i third = _mm512_or_si512(bytes_and(_mm512_srli_epi16(columns[k], 4), 0x0F),
                                                  bytes_and(bits, 0x30));
            store_vector(record + part * stride, 4 * half + k, _mm512_add_epi8(first, offset));
            store_vector(record + (part + 2) * stride, 4 * half + k,
                         _mm512_add_epi8(third, offset));
          }
        }
      }
    }
  }
};

struct Q2KBlock {
  static constexpr int kBytes = 84;
  static void unpack(const std::uint8_t* const* rows, std::size_t block, std::uint8_t* out,
                     std::size_t stride) {
    __m512i tail[4];
    load_columns4(rows, block + kBytes - 16, tail);
    const __m512 d = low_half(tail[3]);
    const __m512 dmin = Avx512::negate(high_half(tail[3]));
    __m512i scales[4];
    load_columns4(rows, block, scales);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      const __m512i minima = bytes_and(_mm512_srli_epi16(scales[j / 2], 4), 0x0F);
      const __m512i pair = _mm512_or_si512(byte_of(minima, 2 * (j % 2)),
                                           _mm512_slli_epi32(byte_of(minima, 2 * (j % 2) + 1), 16));
      store_vector(out + j * stride, 8, d);
      store_vector(out + j * stride, 9, dmin);
      store_vector(out + j * stride, 10, pair);
    }
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        __m512i columns[4];
        load_columns4(rows, block + 16 + 32 * h + 16 * half, columns);
#pragma GCC unroll 4
        for (int s = 0; s < 4; ++s) {
          const int j = 2 * (4 * h + s) + half;
          const __m512i scale = bytes_and(byte_of(scales[j / 4], j % 4), 0x0F);
          const __m512i words = _mm512_or_si512(scale, _mm512_slli_epi32(scale, 16));
#pragma GCC unroll 4
          for (int k = 0; k < 4; ++k) {
            // Two bytes of at most 3 times at most 15: no carry between them.
            const __m512i q = bytes_and(_mm512_srli_epi16(columns[k], 2 * s), 3);
            store_vector(out + (4 * h + s) * stride, 4 * half + k, _mm512_mullo_epi16(q, words));
          }
        }
      }
    }
  }
};

struct Q3KBlock {
  static constexpr int kBytes = 110;
  static void unpack(const std::uint8_t* const* rows, std::size_t block, std::uint8_t* out,
                     std::size_t stride) {
    __m512i tail[4];
    load_columns4(rows, block + kBytes - 16, tail);
    const __m512 d = Avx512::negate(high_half(tail[3]));
    __m512i packed[4];
    load_columns4(rows, block + 96 - 2, packed);  // two bytes early, to end within the block
    const __m512i low[2] = {word_pair(packed[0], packed[1]), word_pair(packed[1], packed[2])};
    const __m512i high = word_pair(packed[2], packed[3]);
    __m512i scales[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m512i four = bytes_and(_mm512_srli_epi16(low[i % 2], 4 * (i / 2)), 0x0F);
      const __m512i two = bytes_and(_mm512_srli_epi16(high, 2 * i), 3);
      scales[i] = _mm512_or_si512(four, _mm512_slli_epi16(two, 4));
    }
    for (int j = 0; j < 8; ++j) store_vector(out + j * stride, 8, d);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      __m512i high_bits[4];
      load_columns4(rows, block + 16 * half, high_bits);
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h) {
        __m512i columns[4];
        load_columns4(rows, block + 32 + 32 * h + 16 * half, columns);
#pragma GCC unroll 4
        for (int s = 0; s < 4; ++s) {
          const int j = 2 * (4 * h + s) + half;
          const SignedScale scale(byte_of(scales[j / 4], j % 4));
#pragma GCC unroll 4
          for (int k = 0; k < 4; ++k) {
            const __m512i bit = bytes_and(_mm512_srli_epi16(high_bits[k], 4 * h + s), 1);
            const __m512i q = _mm512_or_si512(bytes_and(_mm512_srli_epi16(columns[k], 2 * s), 3),
                                              _mm512_slli_epi16(bit, 2));
            store_vector(out + (4 * h + s) * stride, 4 * half + k, scale.code(q));
          }
        }
      }
    }
  }

 private:
  // The upper 16 bits of a and the lower of b.
  static __m512i word_pair(__m512i a, __m512i b) {
    return _mm512_or_si512(_mm512_srli_epi32(a, 16), _mm512_slli_epi32(b, 16));
  }

  // 128 - scale * (q - 4) for bytes q < 8 and -32 <= scale < 32. |scale| * q fits a byte, so that
  // 16-bit products have no carry; the sign is put on afterwards.
  struct SignedScale {
    __m512i magnitude;  // in each 16-bit word
    __m512i sign;       // 0 or -1, in each byte
    __m512i base;       // what is left without the product, in each byte

    explicit SignedScale(__m512i biased) {
      const __m512i scale = _mm512_sub_epi32(biased, _mm512_set1_epi32(32));
      const __m512i absolute = _mm512_abs_epi32(scale);
      magnitude = _mm512_or_si512(absolute, _mm512_slli_epi32(absolute, 16));
      sign = _mm512_srai_epi32(scale, 31);
      // With p = |scale| * q the code is 128 + 4 * scale - ((p ^ sign) - sign), modulo 256.
      const __m512i rest = _mm512_and_si512(
          _mm512_add_epi32(
              _mm512_add_epi32(_mm512_slli_epi32(scale, 2), _mm512_set1_epi32(kCodeOffset)), sign),
          _mm512_set1_epi32(0xFF));
      const __m512i pair = _mm512_or_si512(rest, _mm512_slli_epi32(rest, 8));
      base = _mm512_or_si512(pair, _mm512_slli_epi32(pair, 16));
    }
    __m512i code(__m512i q) const {
      return _mm512_sub_epi8(base, _mm512_xor_si512(_mm512_mullo_epi16(q, magnitude), sign));
    }
  };
};

struct Iq4XsBlock {
  static constexpr int kBytes = 136;
  static void unpack(const std::uint8_t* const* rows, std::size_t block, std::uint8_t* out,
                     std::size_t stride) {
    __m512i head[4];
    load_columns4(rows, block, head);
    const __m512 d = low_half(head[0]);
    const __m512i high = _mm512_srli_epi32(head[0], 16);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      const __m512i four =
          _mm512_and_si512(_mm512_srli_epi32(head[1], 4 * j), _mm512_set1_epi32(0xF));
      const __m512i two = _mm512_and_si512(_mm512_srli_epi32(high, 2 * j), _mm512_set1_epi32(3));
      const __m512i scale =
          _mm512_sub_epi32(_mm512_or_si512(four, _mm512_slli_epi32(two, 4)), _mm512_set1_epi32(32));
      store_vector(out + j * stride, 8, _mm512_mul_ps(d, _mm512_cvtepi32_ps(scale)));
    }
    for (int j = 0; j < 8; ++j) {
      __m512i codes[8];
      read_table_codes<kIq4CodeValues>(rows, block + 8 + 16 * j, codes);
#pragma GCC unroll 8
      for (int k = 0; k < 8; ++k) store_vector(out + j * stride, k, codes[k]);
    }
  }
};

template <class Block>
void unpack_k(const PanelSource<Avx512>& source, std::uint32_t first, std::uint32_t steps,
              std::uint8_t* out, std::size_t stride, std::byte*) {
  for (std::uint32_t i = 0; i < steps; i += 8) {
    const std::size_t block = std::size_t{(first + i) / 8} * Block::kBytes;
    if (source.ahead != 0) {
      for (const std::uint8_t* row : source.rows) {
        for (int line = 0; line < Block::kBytes; line += 64) {
          _mm_prefetch(row + source.ahead + block + line, _MM_HINT_T0);
        }
      }
    }
    Block::unpack(source.rows, block, out + i * stride, stride);
  }
}

}  // namespace
}  // namespace edgerunner::cpu
