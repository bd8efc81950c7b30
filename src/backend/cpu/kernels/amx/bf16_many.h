#pragma once

// More rows of bfloat16 activations than kDirectTokens. They are the first operand of a tile's
// products, as they stand; a panel of 32 weight rows is laid out in scratch by pairs of columns.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/amx/bf16_weights.h"
#include "backend/cpu/kernels/amx/tiles.h"
#include "backend/cpu/kernels/avx512/simd.h"
#include "backend/cpu/kernels/avx512/transpose.h"
#include "backend/cpu/kernels/fetch.h"
#include "backend/cpu/kernels/instruction_sets.h"
#include "backend/cpu/kernels/outputs.h"
#include "backend/cpu/kernels/scratch.h"

namespace edgerunner::cpu {
namespace {

// The outputs of a group of rows of activations, from 16 to kGroupTokens.
class Bf16Many {
 public:
  Bf16Many(const RawProduct& product, std::uint32_t first_token, std::uint32_t tokens,
           const Scratch& scratch)
      : first_token_(first_token),
        tokens_(tokens),
        tiles_((tokens + kTileRows - 1) / kTileRows),
        x_(product.x + first_token * product.x_stride),
        x_stride_(product.x_stride),
        steps_(bf16_steps(product.cols)),
        scratch_(scratch) {}

  void run(const RawProduct& product, std::uint32_t row_begin, std::uint32_t row_end) const {
    const PanelSums sums{scratch_.sums, nullptr, kRows};
    for (std::uint32_t row = row_begin; row < row_end; row += kRows) {
      const std::uint32_t rows = row_end - row < kRows ? row_end - row : kRows;
      store_outputs<Avx512>(product, first_token_, tokens_, row, rows, sums, scratch_,
                            [&](const RawProduct& of) {
                              if (of.type == ElementType::f16) {
                                add_all<true>(of, row, rows, row_end);
                              } else {
                                add_all<false>(of, row, rows, row_end);
                              }
                            });
    }
  }

 private:
  static constexpr std::uint32_t kRows = 2 * kTileRows;  // of a panel
  static constexpr std::size_t kPanelStep = 2 * kTileBytes;
  static constexpr auto kChunkSteps = static_cast<std::uint32_t>(kLargePanelBytes / kPanelStep);
  static constexpr std::size_t kSumsStride = kRows * sizeof(float);

  // The sums of rows [row, row + rows) of a share that ends at row_end.
  template <bool kFromHalves>
  void add_all(const RawProduct& product, std::uint32_t row, std::uint32_t rows,
               std::uint32_t row_end) const {
    *scratch_.laid_out = {};
    // Where they don't fill tiles, the last tile takes the last 16 rows of activations, some of
    // which the one before has too, to sums of its own.
    alignas(64) float last[kTileRows * kRows];
    const bool overlaps = tokens_ % kTileRows != 0;
    const auto sums_of = [&](std::uint32_t tile) {
      return overlaps && tile + 1 == tiles_ ? last
                                            : scratch_.sums + std::size_t{tile} * kTileRows * kRows;
    };
    const auto x_of = [&](std::uint32_t tile) {
      const std::uint32_t token = tile * kTileRows;
      return x_ + (token + kTileRows <= tokens_ ? token : tokens_ - kTileRows) * x_stride_;
    };
    const std::uint8_t* next = row + rows < row_end
                                   ? product.weights + (row + rows) * product.row_bytes
                                   : product.after(row_end);
    const std::uint32_t passes = (tiles_ + 1) / 2;
    Fetch fetch{next, next + kRows * product.row_bytes,
                passes < kRows ? (kRows + passes - 1) / passes : 1};
    for (std::uint32_t first = 0; first < steps_; first += kChunkSteps) {
      const std::uint32_t end = steps_ - first < kChunkSteps ? steps_ : first + kChunkSteps;
      for (int tile = 0; tile < 2; ++tile) fill<kFromHalves>(product, row, rows, tile, first, end);
      const std::size_t at = first * kStepBytes;
      for (std::uint32_t tile = 0; tile < tiles_; tile += 2) {
        if (tile + 1 < tiles_) {
          add_tiles<2>(x_of(tile) + at, x_of(tile + 1) + at, first == 0, end - first, fetch,
                       sums_of(tile), sums_of(tile + 1));
        } else {
          add_tiles<1>(x_of(tile) + at, nullptr, first == 0, end - first, fetch, sums_of(tile),
                       nullptr);
        }
      }
    }
    if (overlaps) {
      __builtin_memcpy(scratch_.sums + std::size_t{tokens_ - kTileRows} * kRows, last, sizeof last);
    }
  }

  // Steps [first, end) of 16 rows of the panel, the last row again past the end.
  template <bool kFromHalves>
  void fill(const RawProduct& product, std::uint32_t row, std::uint32_t rows, std::uint32_t tile,
            std::uint32_t first, std::uint32_t end) const {
    const std::uint8_t* from[kTileRows];
    for (std::uint32_t i = 0; i < kTileRows; ++i) {
      const std::uint32_t r = tile * kTileRows + i;
      from[i] = product.weights + (row + (r < rows ? r : rows - 1)) * product.row_bytes;
    }
    std::uint8_t* to = scratch_.panel + tile * kTileBytes;
    const auto fill_step = [&](const auto& load) __attribute__((always_inline)) {
      __m512i pairs[kTileRows];
      transpose_square(load, pairs);
#pragma GCC unroll 16
      for (int p = 0; p < kTileRows; ++p) _mm512_store_si512(to + p * kStepBytes, pairs[p]);
      to += kPanelStep;
    };
    const std::uint32_t whole_steps = product.cols / kStepColumns;
    const std::uint32_t whole = end < whole_steps ? end : whole_steps;
    for (std::uint32_t step = first; step < whole; ++step) {
      fill_step([&](int r) __attribute__((always_inline)) {
        return load_step<kFromHalves>(from[r] + step * kStepBytes);
      });
    }
    if (whole < end) {
      fill_step([&](int r) __attribute__((always_inline)) {
        return load_rest<kFromHalves>(from[r] + whole * kStepBytes, product.cols % kStepColumns);
      });
    }
  }

  // One or two tiles of rows of activations with both of the panel.
  template <int kTiles>
  void add_tiles(const std::byte* x0, const std::byte* x1, bool begins, std::uint32_t steps,
                 Fetch& fetch, float* sums0, float* sums1) const {
    if (begins) {
      zero_tile<0>();
      zero_tile<1>();
      if constexpr (kTiles == 2) {
        zero_tile<2>();
        zero_tile<3>();
      }
    } else {
      load_tile<0>(sums0, kSumsStride);
      load_tile<1>(sums0 + kTileRows, kSumsStride);
      if constexpr (kTiles == 2) {
        load_tile<2>(sums1, kSumsStride);
        load_tile<3>(sums1 + kTileRows, kSumsStride);
      }
    }
    const std::uint8_t* panel = scratch_.panel;
    for (std::uint32_t step = 0; step < steps; ++step) {
      fetch.step();
      load_tile<4>(x0, x_stride_);
      load_tile<6>(panel, kStepBytes);
      multiply_tiles<0, 4, 6>();
      load_tile<7>(panel + kTileBytes, kStepBytes);
      multiply_tiles<1, 4, 7>();
      if constexpr (kTiles == 2) {
        load_tile<5>(x1, x_stride_);
        multiply_tiles<2, 5, 6>();
        multiply_tiles<3, 5, 7>();
        x1 += kStepBytes;
      }
      x0 += kStepBytes;
      panel += kPanelStep;
    }
    store_tile<0>(sums0, kSumsStride);
    store_tile<1>(sums0 + kTileRows, kSumsStride);
    if constexpr (kTiles == 2) {
      store_tile<2>(sums1, kSumsStride);
      store_tile<3>(sums1 + kTileRows, kSumsStride);
    }
  }

  std::uint32_t first_token_;
  std::uint32_t tokens_;
  std::uint32_t tiles_;
  const std::byte* x_;
  std::size_t x_stride_;
  std::uint32_t steps_;
  const Scratch& scratch_;
};

}  // namespace
}  // namespace edgerunner::cpu
