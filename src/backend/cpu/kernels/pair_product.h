#pragma once

// The product of bfloat16 activations with weights of 16 bits. Up to S::kPairTokens rows of
// activations take them as they are in the file; for more, a panel of weight rows that stays in the
// level 2 cache is laid out in scratch as the tiles read it. Written once over a set of vector
// operations S, included by the translation unit of each instruction set.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/instruction_sets.h"
#include "backend/cpu/kernels/outputs.h"
#include "backend/cpu/kernels/pair_tile.h"
#include "backend/cpu/kernels/scratch.h"

namespace edgerunner::cpu {
namespace {

// Calls run(PairTile) with a tile of `tokens` rows of activations, up to S::kPairTokens.
template <class S, int kTokens = 1, class Run>
inline void with_pair_tile(std::uint32_t tokens, PairActivations x, const Run& run) {
  if constexpr (kTokens < S::kPairTokens) {
    if (tokens > kTokens) return with_pair_tile<S, kTokens + 1>(tokens, x, run);
  }
  PairTile<S, kTokens> tile(x);
  run(tile);
}

// The outputs of a group of rows of activations, at most kGroupTokens.
template <class S>
class PairProduct {
 public:
  PairProduct(const RawProduct& product, std::uint32_t first_token, const Scratch& scratch)
      : first_token_(first_token),
        tokens_(product.tokens - first_token < kGroupTokens ? product.tokens - first_token
                                                            : kGroupTokens),
        x_{product.x + first_token * product.x_stride, product.x_stride},
        panel_rows_(rows_of_a_panel(product.cols)),
        scratch_(scratch) {}

  void run(const RawProduct& product, std::uint32_t row_begin, std::uint32_t row_end) const {
    const PanelSums sums{scratch_.sums, nullptr, kMostRows};
    for (std::uint32_t row = row_begin; row < row_end; row += panel_rows_) {
      const std::uint32_t rows = row_end - row < panel_rows_ ? row_end - row : panel_rows_;
      store_outputs<S>(product, first_token_, tokens_, row, rows, sums, scratch_,
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
  static constexpr auto kTile = static_cast<std::uint32_t>(kTileRows<S>);
  static constexpr std::uint32_t kTileLines = PanelRows<S>::kRecord / 64;  // a step
  static constexpr auto kMostTokens = static_cast<std::uint32_t>(S::kPairTokens);
  static constexpr std::uint32_t kMostRows = 32;  // of a panel: the sums that scratch has room for

  static std::size_t tile_bytes(std::uint32_t cols) {
    return PanelRows<S>::kRecord * PanelRows<S>{nullptr, cols}.steps();
  }
  static std::uint32_t rows_of_a_panel(std::uint32_t cols) {
    const auto rows = static_cast<std::uint32_t>(kLargePanelBytes / tile_bytes(cols)) * kTile;
    return rows < kTile ? kTile : rows < kMostRows ? rows : kMostRows;
  }

  // The sums of rows [row, row + rows) of a share that ends at row_end.
  template <bool kFromHalves>
  void add_all(const RawProduct& product, std::uint32_t row, std::uint32_t rows,
               std::uint32_t row_end) const {
    const auto tile_rows = [&](std::uint32_t r) {  // the last row again past the end
      FileRows<S, kFromHalves> from;
      from.cols = product.cols;
      for (std::uint32_t i = 0; i < kTile; ++i) {
        from.row[i] =
            product.weights + (row + (r + i < rows ? r + i : rows - 1)) * product.row_bytes;
      }
      return from;
    };
    // As much as `count` rows take, from `first` on, or of what is read after the share.
    const auto fetch_rows = [&](std::uint32_t first, std::uint32_t count, std::uint32_t lines) {
      const std::uint8_t* next =
          first < row_end ? product.weights + first * product.row_bytes : product.after(row_end);
      return Fetch{next, next + count * product.row_bytes, lines};
    };
    const std::size_t bytes = tile_bytes(product.cols);
    if (tokens_ <= kMostTokens || bytes > Scratch::kPanelBytes) {
      return add_tiles(rows, [&](auto& tile, std::uint32_t r, float* sums) {
        Fetch fetch = fetch_rows(row + r + kTile, kTile, kTileLines);
        tile.run(tile_rows(r), fetch, sums, kMostRows);
      });
    }
    *scratch_.laid_out = {};
    const auto panel_rows = [&](std::uint32_t r) {
      return PanelRows<S>{scratch_.panel + r / kTile * bytes, product.cols};
    };
    for (std::uint32_t r = 0; r < rows; r += kTile) panel_rows(r).fill(tile_rows(r));
    // Memory is read evenly over the tiles, as far as a line a step goes.
    const std::uint32_t passes = passes_over_rows();
    Fetch fetch =
        fetch_rows(row + rows, rows, passes < kTileLines ? (kTileLines + passes - 1) / passes : 1);
    add_tiles(rows, [&](auto& tile, std::uint32_t r, float* sums) {
      tile.run(panel_rows(r), fetch, sums, kMostRows);
    });
  }

  std::uint32_t passes_over_rows() const { return (tokens_ + kMostTokens - 1) / kMostTokens; }

  // Calls run(tile, r, sums) for the tiles of all rows of activations at each of the rows r.
  template <class Run>
  void add_tiles(std::uint32_t rows, const Run& run) const {
    const std::uint32_t passes = passes_over_rows();
    std::uint32_t begin = 0;
    for (std::uint32_t i = 0; i < passes; ++i) {  // of nearly equal sizes
      const std::uint32_t end = tokens_ * (i + 1) / passes;
      float* sums = scratch_.sums + std::size_t{begin} * kMostRows;
      with_pair_tile<S>(end - begin, {x_.begin + begin * x_.stride, x_.stride}, [&](auto& tile) {
        for (std::uint32_t r = 0; r < rows; r += kTile) run(tile, r, sums + r);
      });
      begin = end;
    }
  }

  std::uint32_t first_token_;
  std::uint32_t tokens_;
  PairActivations x_;
  std::uint32_t panel_rows_;
  const Scratch& scratch_;
};

template <class S>
void multiply_pairs(const RawProduct& product, std::uint32_t row_begin, std::uint32_t row_end,
                    const Scratch& scratch) {
  for (std::uint32_t first = 0; first < product.tokens; first += kGroupTokens) {
    PairProduct<S>(product, first, scratch).run(product, row_begin, row_end);
  }
}

}  // namespace
}  // namespace edgerunner::cpu
