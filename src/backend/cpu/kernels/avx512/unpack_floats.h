#pragma once

// Panels of f32 and bfloat16: rows of 32-bit words, transposed.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/avx512/simd.h"
#include "backend/cpu/kernels/avx512/transpose.h"
#include "backend/cpu/kernels/panel_product.h"

namespace edgerunner::cpu {
namespace {

// `words` 16-bit words from `offset` on of each row, as vectors of 32 bits; a last half is zero.
inline void transpose_rows(const std::uint8_t* const* rows, std::size_t offset, std::uint32_t words,
                           std::uint8_t* out, std::size_t stride) {
  for (std::uint32_t i = 0; i < words; i += 32) {
    const std::uint32_t count = words - i < 32 ? words - i : 32;
    const __mmask32 mask = count == 32 ? 0xFFFFFFFFU : (1U << count) - 1;
    __m512i columns[16];
    load_columns16(rows, offset + 2 * std::size_t{i}, mask, columns);
    for (std::uint32_t c = 0; c < (count + 1) / 2; ++c) {
      _mm512_store_si512(out, columns[c]);
      out += stride;
    }
  }
}

// Weights that are f32 in the file.
void unpack_f32(const PanelSource<Avx512>& source, std::uint32_t first, std::uint32_t steps,
                std::uint8_t* out, std::size_t stride, std::byte*) {
  transpose_rows(source.rows, 4 * std::size_t{first}, 2 * steps, out, stride);
}

// Weights of any other type, as dequantize() has them.
void unpack_dequantized(const PanelSource<Avx512>& source, std::uint32_t first, std::uint32_t steps,
                        std::uint8_t* out, std::size_t stride, std::byte* temporary) {
  auto* values = reinterpret_cast<float*>(temporary);
  const std::uint8_t* rows[16];
  for (int r = 0; r < 16; ++r) {
    float* row = values + std::size_t{steps} * static_cast<std::size_t>(r);
    dequantize_columns(source.type, source.rows[r], first, steps, row);
    rows[r] = reinterpret_cast<const std::uint8_t*>(row);
  }
  transpose_rows(rows, 0, 2 * steps, out, stride);
}

// Rows of an odd length end within a pair.
inline std::uint32_t words_left(const PanelSource<Avx512>& source, std::uint32_t first,
                                std::uint32_t steps) {
  return source.cols - 2 * first < 2 * steps ? source.cols - 2 * first : 2 * steps;
}

void unpack_bf16(const PanelSource<Avx512>& source, std::uint32_t first, std::uint32_t steps,
                 std::uint8_t* out, std::size_t stride, std::byte*) {
  transpose_rows(source.rows, 4 * std::size_t{first}, words_left(source, first, steps), out,
                 stride);
}

void unpack_f16(const PanelSource<Avx512>& source, std::uint32_t first, std::uint32_t steps,
                std::uint8_t* out, std::size_t stride, std::byte* temporary) {
  const std::uint32_t words = words_left(source, first, steps);
  const std::size_t row_bytes = 4 * (std::size_t{steps} + 16);
  const std::uint8_t* rows[16];
  for (int r = 0; r < 16; ++r) {
    auto* row = reinterpret_cast<std::uint8_t*>(temporary) + row_bytes * r;
    const std::uint8_t* from = source.rows[r] + 4 * std::size_t{first};
    for (std::uint32_t i = 0; i < words; i += 32) {
      const std::uint32_t count = words - i < 32 ? words - i : 32;
      const __mmask32 mask = count == 32 ? 0xFFFFFFFFU : (1U << count) - 1;
      const __m512i halves = _mm512_maskz_loadu_epi16(mask, from + 2 * std::size_t{i});
      const __m512 low = _mm512_cvtph_ps(_mm512_castsi512_si256(halves));
      const __m512 high = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1));
      _mm512_storeu_si512(row + 2 * std::size_t{i},
                          reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
      if (source.ahead != 0) {
        _mm_prefetch(from + source.ahead + 2 * std::size_t{i}, _MM_HINT_T0);
      }
    }
    rows[r] = row;
  }
  transpose_rows(rows, 0, words, out, stride);
}

}  // namespace
}  // namespace edgerunner::cpu
