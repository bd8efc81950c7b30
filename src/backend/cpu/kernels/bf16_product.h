#pragma once

// The product of bfloat16 activations with weights of 16 bits. Up to S::kBf16Tokens rows of
// activations take them as they are in the file, and so do more where rows are too long for a
// panel; otherwise a panel of weight rows that stays in the level 2 cache is laid out in scratch as
// the tiles read it. Written once over a set of vector operations S, included by the translation
// unit of each instruction set.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/bf16_tile.h"
#include "backend/cpu/kernels/instruction_sets.h"
#include "backend/cpu/kernels/outputs.h"
#include "backend/cpu/kernels/scratch.h"

namespace edgerunner::cpu {
namespace {

// From more rows of activations on, a core holds too few operations at once to ask by itself for as
// much memory as it could wait for.
inline constexpr std::uint32_t kStreamTokens = 2;

// Calls run(Bf16Tile) with a tile of `tokens` rows of activations, up to S::kBf16Tokens.
template <class S, std::uint32_t kTokens = 1, class Run>
inline void with_bf16_tile(std::uint32_t tokens, Bf16Activations x, const Run& run) {
  if constexpr (kTokens < S::kBf16Tokens) {
    if (tokens > kTokens) return with_bf16_tile<S, kTokens + 1>(tokens, x, run);
  }
  Bf16Tile<S, kTokens> tile(x);
  run(tile);
}

// One or two rows of activations. So few operations are left for a weight that memory is all they
// wait for, and what the machine's own prefetchers bring is the most there is to have: they follow
// rows that are read from end to end, more of it the more streams there are. So the rows are taken
// from kStreams places of a share in turn.
template <class S, bool kFromHalves>
class Bf16Streams {
 public:
  Bf16Streams(const RawProduct& product, const Scratch& scratch)
      : product_(product), scratch_(scratch) {}

  void run(std::uint32_t row_begin, std::uint32_t row_end) const {
    const std::uint32_t apart = (row_end - row_begin) / kTile * kTileStreamRows;
    fetch_begins(row_begin, apart);
    for (std::uint32_t begin = 0; begin < apart; begin += kStreamRows) {
      const std::uint32_t count = apart - begin < kStreamRows ? apart - begin : kStreamRows;
      for (std::uint32_t r = 0; r < count; r += kTileStreamRows) {
        run_tile(r * kStreams, [&](std::uint32_t i) {
          return row_begin + i % kStreams * apart + begin + r + i / kStreams;
        });
      }
      sort_sums(count);
      for (std::uint32_t k = 0; k < kStreams; ++k) {
        finish<S>(product_, 0, product_.tokens, row_begin + k * apart + begin, count,
                  PanelSums{scratch_.term_sums + k * kStreamRows, nullptr, kRows}, nullptr);
      }
    }
    if (const std::uint32_t row = row_begin + kStreams * apart; row < row_end) {
      run_tile(0, [&](std::uint32_t i) { return row + i < row_end ? row + i : row_end - 1; });
      finish<S>(product_, 0, product_.tokens, row, row_end - row,
                PanelSums{scratch_.sums, nullptr, kRows}, nullptr);
    }
  }

 private:
  static constexpr auto kTile = static_cast<std::uint32_t>(kTileRows<S>);
  static constexpr std::uint32_t kStreams = 4;
  static constexpr std::uint32_t kTileStreamRows = kTile / kStreams;
  static constexpr std::size_t kBeginBytes = 1024;
  static constexpr std::uint32_t kStreamRows = 8;  // whose sums stand in scratch at once
  static constexpr std::uint32_t kRows = kStreams * kStreamRows;

  // Of each stream, as no prefetcher follows it yet.
  void fetch_begins(std::uint32_t row_begin, std::uint32_t apart) const {
    for (std::size_t line = 0; line < kBeginBytes; line += 64) {
      for (std::uint32_t k = 0; k < kStreams; ++k) {
        const std::uint8_t* row = product_.weights + (row_begin + k * apart) * product_.row_bytes;
        __builtin_prefetch(row + line, 0, 2);
      }
    }
  }

  template <class RowOf>
  void run_tile(std::uint32_t at, const RowOf& row_of) const {
    FileRows<S, kFromHalves> rows;
    rows.cols = product_.cols;
    for (std::uint32_t i = 0; i < kTile; ++i) {
      rows.row[i] = product_.weights + row_of(i) * product_.row_bytes;
    }
    with_bf16_tile<S>(product_.tokens, {product_.x, product_.x_stride},
                      [&](auto& tile) { tile.run_in_turn(rows, scratch_.sums + at, kRows); });
  }

  // From the order of tiles, a row of each stream in turn, to that of streams.
  void sort_sums(std::uint32_t count) const {
    for (std::uint32_t t = 0; t < product_.tokens; ++t) {
      const float* from = scratch_.sums + t * kRows;
      float* to = scratch_.term_sums + t * kRows;
      for (std::uint32_t r = 0; r < count; ++r) {
        for (std::uint32_t k = 0; k < kStreams; ++k) {
          to[k * kStreamRows + r] = from[r * kStreams + k];
        }
      }
    }
  }

  const RawProduct& product_;
  const Scratch& scratch_;
};

// The outputs of a group of rows of activations, at most kGroupTokens.
template <class S>
class Bf16Product {
 public:
  Bf16Product(const RawProduct& product, std::uint32_t first_token, const Scratch& scratch)
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
  static constexpr std::uint32_t kRowsAhead = 16;  // are fetched where no panel is filled
  static constexpr std::uint32_t kMostRows = 32;   // of a panel: the sums that scratch has room for

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
    // As much as `count` rows take, from row `first` on or of what is read after the share.
    const auto fetch_rows = [&](std::uint32_t first, std::uint32_t count, std::uint32_t lines) {
      const std::uint8_t* next =
          first < row_end
              ? product.weights + first * product.row_bytes
              : product.after(row_end) + std::size_t{first - row_end} * product.row_bytes;
      return Fetch{next, next + count * product.row_bytes, lines};
    };
    const std::size_t bytes = tile_bytes(product.cols);
    if (tokens_ <= S::kBf16Tokens || bytes > Scratch::kPanelBytes) {
      return add_tiles(rows, [&](auto& tile, std::uint32_t r, float* sums) {
        Fetch fetch = fetch_rows(row + r + kRowsAhead, kTile, kTileLines);
        tile.run(tile_rows(r), fetch, sums, kMostRows);
      });
    }
    *scratch_.laid_out = {};
    const auto panel_rows = [&](std::uint32_t r) {
      return PanelRows<S>{scratch_.panel + r / kTile * bytes, product.cols};
    };
    for (std::uint32_t r = 0; r < rows; r += kTile) panel_rows(r).fill(tile_rows(r));
    // The next panel, read evenly over the tiles as far as a line a step goes.
    const std::uint32_t passes = passes_over_rows();
    Fetch fetch =
        fetch_rows(row + rows, rows, passes < kTileLines ? (kTileLines + passes - 1) / passes : 1);
    add_tiles(rows, [&](auto& tile, std::uint32_t r, float* sums) {
      tile.run(panel_rows(r), fetch, sums, kMostRows);
    });
  }

  std::uint32_t passes_over_rows() const { return (tokens_ + S::kBf16Tokens - 1) / S::kBf16Tokens; }

  // Calls run(tile, r, sums) for the tiles of all rows of activations at each of the rows r.
  template <class Run>
  void add_tiles(std::uint32_t rows, const Run& run) const {
    const std::uint32_t passes = passes_over_rows();
    std::uint32_t begin = 0;
    for (std::uint32_t i = 0; i < passes; ++i) {  // of nearly equal sizes
      const std::uint32_t end = tokens_ * (i + 1) / passes;
      float* sums = scratch_.sums + std::size_t{begin} * kMostRows;
      with_bf16_tile<S>(end - begin, {x_.begin + begin * x_.stride, x_.stride}, [&](auto& tile) {
        for (std::uint32_t r = 0; r < rows; r += kTile) run(tile, r, sums + r);
      });
      begin = end;
    }
  }

  std::uint32_t first_token_;
  std::uint32_t tokens_;
  Bf16Activations x_;
  std::uint32_t panel_rows_;
  const Scratch& scratch_;
};

template <class S>
void multiply_bf16(const RawProduct& product, std::uint32_t row_begin, std::uint32_t row_end,
                   const Scratch& scratch) {
  if (product.tokens == 0) return;
  if (product.tokens <= kStreamTokens && product.gate == nullptr) {
    if (product.type == ElementType::f16) {
      return Bf16Streams<S, true>(product, scratch).run(row_begin, row_end);
    }
    return Bf16Streams<S, false>(product, scratch).run(row_begin, row_end);
  }
  for (std::uint32_t first = 0; first < product.tokens; first += kGroupTokens) {
    Bf16Product<S>(product, first, scratch).run(product, row_begin, row_end);
  }
}

}  // namespace
}  // namespace edgerunner::cpu
