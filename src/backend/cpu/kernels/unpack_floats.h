#pragma once

// Panels of f32: rows of 32-bit words, transposed.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/panel_kernel.h"

namespace edgerunner::cpu {
namespace {

// `count` words of 32 bits from `offset` on of each row, as vectors.
template <class S>
inline void transpose_rows(const PanelSource<S>& source, std::size_t offset, std::uint32_t count,
                           std::uint8_t* out, std::size_t stride) {
  constexpr std::uint32_t kWords = S::kLanes;
  for (std::uint32_t i = 0; i < count; i += kWords) {
    const std::uint32_t there = count - i < kWords ? count - i : kWords;
    typename S::I columns[S::kLanes];
    prefetch_share(source, offset + 4 * std::size_t{i}, 4 * std::size_t{kWords});
    S::load_square(source.rows, offset + 4 * std::size_t{i}, there, columns);
    for (std::uint32_t c = 0; c < there; ++c) {
      S::store_record(out, 0, columns[c]);
      out += stride;
    }
  }
}

// Weights that are f32 in the file.
template <class S>
void unpack_f32(const PanelSource<S>& source, std::uint32_t first, std::uint32_t steps,
                std::uint8_t* out, std::size_t stride, std::byte*) {
  transpose_rows<S>(source, 4 * std::size_t{first}, steps, out, stride);
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
  transpose_rows<S>(dequantized, 0, steps, out, stride);
}

}  // namespace
}  // namespace edgerunner::cpu
