#pragma once

// Panels of f32 and bfloat16: rows of 32-bit words, transposed.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/panel_kernel.h"

namespace edgerunner::cpu {
namespace {

// `words` 16-bit words from `offset` on of each row, as vectors of 32 bits; a last half is zero.
template <class S, bool kFromHalves = false>
inline void transpose_rows(const PanelSource<S>& source, std::size_t offset, std::uint32_t words,
                           std::uint8_t* out, std::size_t stride) {
  constexpr std::uint32_t kWords = 2 * S::kLanes;
  for (std::uint32_t i = 0; i < words; i += kWords) {
    const std::uint32_t count = words - i < kWords ? words - i : kWords;
    typename S::I columns[S::kLanes];
    prefetch_share(source, offset + 2 * std::size_t{i}, 2 * std::size_t{kWords});
    S::template load_square<kFromHalves>(source.rows, offset + 2 * std::size_t{i}, count, columns);
    for (std::uint32_t c = 0; c < (count + 1) / 2; ++c) {
      S::store_record(out, 0, columns[c]);
      out += stride;
    }
  }
}

// Weights that are f32 in the file.
template <class S>
void unpack_f32(const PanelSource<S>& source, std::uint32_t first, std::uint32_t steps,
                std::uint8_t* out, std::size_t stride, std::byte*) {
  transpose_rows<S>(source, 4 * std::size_t{first}, 2 * steps, out, stride);
}

// Weights of any other type, as dequantize() has them.
template <class S>
void unpack_dequantized(const PanelSource<S>& source, std::uint32_t first, std::uint32_t steps,
                        std::uint8_t* out, std::size_t stride, std::byte* temporary) {
  auto* values = reinterpret_cast<float*>(temporary);
  PanelSource<S> dequantized{ElementType::f32, source.cols, {}, 0};
  for (int r = 0; r < S::kLanes; ++r) {
    float* row = values + std::size_t{steps} * static_cast<std::size_t>(r);
    dequantize_columns(source.type, source.rows[r], first, steps, row);
    dequantized.rows[r] = reinterpret_cast<const std::uint8_t*>(row);
  }
  transpose_rows<S>(dequantized, 0, 2 * steps, out, stride);
}

// Rows of an odd length end within a pair.
template <class S>
inline std::uint32_t words_left(const PanelSource<S>& source, std::uint32_t first,
                                std::uint32_t steps) {
  return source.cols - 2 * first < 2 * steps ? source.cols - 2 * first : 2 * steps;
}

template <class S>
void unpack_bf16(const PanelSource<S>& source, std::uint32_t first, std::uint32_t steps,
                 std::uint8_t* out, std::size_t stride, std::byte*) {
  transpose_rows<S>(source, 4 * std::size_t{first}, words_left(source, first, steps), out, stride);
}

template <class S>
void unpack_f16(const PanelSource<S>& source, std::uint32_t first, std::uint32_t steps,
                std::uint8_t* out, std::size_t stride, std::byte*) {
  transpose_rows<S, true>(source, 4 * std::size_t{first}, words_left(source, first, steps), out,
                          stride);
}

}  // namespace
}  // namespace edgerunner::cpu
