#pragma once

// The product of a few rows of activations with weights read in the order of memory, without a
// panel. A vector of codes holds blocks of one weight row; its products are reduced to one integer
// a block, scaled, and kept as a row of a square tile. After S::kLanes weight rows the tiles are
// transposed, and each output's sum runs over its blocks in their order, with a weight row a lane.
// Written once over the formats of an instruction set, included by its translation unit.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/codes.h"
#include "backend/cpu/kernels/instruction_sets.h"
#include "backend/cpu/kernels/outputs.h"
#include "backend/cpu/kernels/row_format.h"
#include "backend/cpu/kernels/row_group.h"
#include "backend/cpu/kernels/scratch.h"

namespace edgerunner::cpu {
namespace {

// So far ahead weights are fetched into the level 2 cache, which can wait for more lines at once
// than level 1: a few times what arrives in the latency of memory, 100 to 200 ns at 15 to 30 GB/s a
// core.
inline constexpr std::size_t kRowPrefetchBytes = 16384;

inline void prefetch_weights(const std::uint8_t* p) { __builtin_prefetch(p, 0, 2); }

// How the columns of a row are cut: whole groups, then units, of which the last may overlap what
// stands before it.
template <class Format>
struct RowCut {
  static constexpr std::uint32_t kLanes = Format::S::kLanes;
  std::uint32_t blocks;
  std::uint32_t groups;
  std::uint32_t units;

  explicit RowCut(std::uint32_t cols)
      : blocks(cols / kQ8Length),
        groups(blocks / kLanes),
        units((blocks % kLanes + Format::kUnit - 1) / Format::kUnit) {}

  // The first block of a unit.
  std::uint32_t begin(std::uint32_t unit) const {
    const std::uint32_t begin = groups * kLanes + unit * Format::kUnit;
    return begin + Format::kUnit <= blocks ? begin : blocks - Format::kUnit;
  }
  // Its blocks that don't stand before it as well.
  std::uint32_t counted(std::uint32_t unit) const {
    const std::uint32_t before = groups * kLanes + unit * Format::kUnit - begin(unit);
    return (1U << Format::kUnit) - (1U << before);
  }
};

// One kind of product: a format and a number of rows of activations. The second terms of a row
// (q8_block.h) are a row more, for the groups that have some.
template <class Format, int kTokens>
class RowProduct {
 public:
  using S = typename Format::S;
  using F = typename S::F;

  RowProduct(const RawProduct& product, const Scratch& scratch)
      : product_(product),
        scratch_(scratch),
        cut_(product.cols),
        x_(reinterpret_cast<Group*>(scratch.panel)),
        tiles_(reinterpret_cast<float*>(scratch.temporary)),
        sums_(scratch.sums),
        term_sums_(scratch.term_sums) {}

  // Whether scratch can hold what a row as long as this needs.
  bool fits() const {
    return cut_.blocks >= Format::kUnit &&
           (cut_.groups + cut_.units) * kRows * sizeof(Group) <= Scratch::kPanelBytes &&
           cut_.groups * kTiles * kTileFloats * sizeof(float) <= Scratch::kTemporaryBytes &&
           cut_.blocks * sizeof(Q8Block) <= Scratch::kTemporaryBytes;
  }

  void run(std::uint32_t row_begin, std::uint32_t row_end) {
    const std::uint8_t* begin = product_.weights + row_begin * product_.row_bytes;
    for (std::size_t i = 0; i < kRowPrefetchBytes; i += 64) prefetch_weights(begin + i);
    if (!scratch_.holds(product_.operand, product_.type, kTokens)) fill_groups();
    const std::uint8_t* const end = product_.weights + row_end * product_.row_bytes;
    const std::uint8_t* const then = product_.after(row_end);
    for (std::uint32_t row = row_begin; row < row_end; row += S::kLanes) {
      const std::uint32_t left = row_end - row;
      const std::uint32_t rows = left < S::kLanes ? left : S::kLanes;
      const std::uint8_t* weights = product_.weights + row * product_.row_bytes;
      for (std::uint32_t r = 0; r < rows; ++r) {
        const std::uint8_t* weight_row = weights + r * product_.row_bytes;
        const std::uint8_t* ahead = weight_row + kRowPrefetchBytes;
        if (ahead >= end) ahead = then + (ahead - end);
        multiply_row(weight_row, ahead, tiles_ + std::size_t{r} * S::kLanes);
      }
      F sums[kRows];
      for (int i = 0; i < kRows; ++i) sums[i] = S::zero();
      for (std::uint32_t g = 0; g < cut_.groups; ++g) add_tiles(g, sums);
      for (std::uint32_t u = 0; u < cut_.units; ++u) add_unit(u, weights, rows, sums);
      for (int t = 0; t < kTokens; ++t) {
        S::store(sums_ + t * S::kLanes, sums[t]);
        S::store(term_sums_ + t * S::kLanes, sums[kTokens + t]);
      }
      finish<S>(product_, 0, kTokens, row, rows, PanelSums{sums_, term_sums_, S::kLanes}, nullptr);
    }
  }

 private:
  using Group = RowGroup<S>;
  using Layout = typename Format::Layout;
  static constexpr LaneOfBlock<Layout, S::kLanes> kLane{};
  static constexpr int kRows = 2 * kTokens;  // first terms, then second terms
  static constexpr int kTiles = kRows + (Format::kForm == CodeForm::minimum ? 1 : 0);
  static constexpr std::size_t kTileFloats = std::size_t{S::kLanes} * S::kLanes;
  static constexpr std::size_t kGroupBytes = S::kLanes / Format::kUnit * Format::kUnitBytes;

  void fill_groups() {
    for (std::uint32_t t = 0; t < kTokens; ++t) {
      const std::byte* row = product_.x + t * product_.x_stride;
      fill_row(reinterpret_cast<const Q8Block*>(row), nullptr, t);
      // The second terms in the places of their blocks, where the tiles will be.
      auto* terms = reinterpret_cast<Q8Block*>(tiles_);
      __builtin_memset(terms, 0, cut_.blocks * sizeof(Q8Block));
      for_each_term(row, cut_.blocks,
                    [&](std::uint32_t b, const Q8Block& term) { terms[b] = term; });
      fill_row(terms, q8_mask(row, cut_.blocks), kTokens + t);
    }
  }

  // All blocks of a row of activations, or those of a mask.
  void fill_row(const Q8Block* blocks, const std::uint64_t* mask, std::uint32_t i) {
    for (std::uint32_t g = 0; g < cut_.groups; ++g) {
      fill<S::kLanes>(blocks, mask, g * S::kLanes, (1U << S::kLanes) - 1, x_[g * kRows + i]);
    }
    for (std::uint32_t u = 0; u < cut_.units; ++u) {
      fill<Format::kUnit>(blocks, mask, cut_.begin(u), cut_.counted(u),
                          x_[(cut_.groups + u) * kRows + i]);
    }
  }

  template <int kPeriod>
  static void fill(const Q8Block* blocks, const std::uint64_t* mask, std::uint32_t first,
                   std::uint32_t counted, Group& x) {
    for (std::uint32_t b = 0; mask != nullptr && b < kPeriod; ++b) {
      const std::uint64_t bit = mask[(first + b) / 64] >> ((first + b) % 64) & 1;
      counted &= ~(static_cast<std::uint32_t>(bit ^ 1) << b);
    }
    x.counted = counted;
    if (counted != 0) fill_group<Format, kPeriod>(blocks + first, counted, x);
  }

  template <class Units>
  static void multiply(const Units& units, const Group* x, float* out, std::size_t tile_stride) {
    multiply_group<Format, kTokens>(units, x, out, tile_stride, out + kRows * tile_stride);
  }

  // The whole groups of a weight row, to its row of each tile; fetches as much at `ahead`.
  void multiply_row(const std::uint8_t* weights, const std::uint8_t* ahead, float* out) const {
    const std::uint8_t* end = ahead + product_.row_bytes;
    for (std::uint32_t g = 0; g < cut_.groups; ++g) {
#pragma GCC unroll 8
      for (std::size_t line = 0; line < kGroupBytes; line += 64) prefetch_weights(ahead + line);
      ahead += kGroupBytes;
      multiply(AdjacentUnits<Format>{weights}, x_ + g * kRows, out, kTileFloats);
      weights += kGroupBytes;
      out += kTiles * kTileFloats;
    }
    for (; ahead < end; ahead += 64) prefetch_weights(ahead);
  }

  void add_tiles(std::uint32_t group, F* sums) const {
    const float* tiles = tiles_ + group * kTiles * kTileFloats;
    const Group* x = x_ + group * kRows;
    F minima[S::kLanes] = {};
    if constexpr (kTiles > kRows) S::transpose(tiles + kRows * kTileFloats, minima);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      if (i >= kTokens && x[i].counted == 0) continue;
      F columns[S::kLanes];
      S::transpose(tiles + static_cast<std::size_t>(i) * kTileFloats, columns);
#pragma GCC unroll 16
      for (int b = 0; b < S::kLanes; ++b) {
        if (i >= kTokens && (x[i].counted >> b & 1) == 0) continue;
        const int lane = kLane.lane[b];
        sums[i] = add_block<Format>(x[i], b, columns[lane], minima[lane], sums[i]);
      }
    }
  }

  // A unit of columns of all rows; a group holds it of several.
  void add_unit(std::uint32_t unit, const std::uint8_t* weights, std::uint32_t rows,
                F* sums) const {
    constexpr int kUnit = static_cast<int>(Format::kUnit);
    constexpr int kUnitRows = S::kLanes / kUnit;  // of a group
    static constexpr UnitLanes kUnitLanes = unit_lanes();
    const Group* x = x_ + (cut_.groups + unit) * kRows;
    const std::uint8_t* first =
        weights + std::size_t{cut_.begin(unit)} * Format::kUnitBytes / Format::kUnit;
    alignas(64) float values[kTiles][kUnit][S::kLanes];
    for (int g = 0; g < kUnit; ++g) {
      UnitsOfRows<Format> units;
      for (int i = 0; i < kUnitRows; ++i) {  // the last row again past the end
        const auto r = static_cast<std::uint32_t>(g * kUnitRows + i);
        units.row[i] = first + (r < rows ? r : rows - 1) * product_.row_bytes;
      }
      multiply(units, x, values[0][g], std::size_t{kUnit} * S::kLanes);
    }
    const auto column = [&](int tile, int b) {
      F rows_of_block = S::zero();
      for (int g = 0; g < kUnit; ++g) {
        rows_of_block = S::select_lanes(rows_of_block, S::load(values[tile][g]), kUnitLanes.lane[b],
                                        g * kUnitRows, kUnitRows);
      }
      return rows_of_block;
    };
#pragma GCC unroll 8
    for (int b = 0; b < kUnit; ++b) {
      F minima = S::zero();
      if constexpr (kTiles > kRows) minima = column(kRows, b);
      for (int i = 0; i < kRows; ++i) {
        if ((x[i].counted >> b & 1) == 0) continue;
        sums[i] = add_block<Format>(x[i], b, column(i, b), minima, sums[i]);
      }
    }
  }

  // For block b of a unit, the lane that holds it of each row, in the row's group.
  struct UnitLanes {
    std::int32_t lane[Format::kUnit][S::kLanes];
  };
  static constexpr UnitLanes unit_lanes() {
    UnitLanes lanes{};
    constexpr int kUnit = static_cast<int>(Format::kUnit);
    for (int b = 0; b < kUnit; ++b) {
      for (int r = 0; r < S::kLanes; ++r) {
        lanes.lane[b][r] = kLane.lane[r % (S::kLanes / kUnit) * kUnit + b];
      }
    }
    return lanes;
  }

  const RawProduct& product_;
  const Scratch& scratch_;
  RowCut<Format> cut_;
  Group* x_;          // [groups and units, kRows]
  float* tiles_;      // [groups, kTiles, lanes, lanes]
  float* sums_;       // [kTokens, lanes]
  float* term_sums_;  // [kTokens, lanes]
};

using RowMultiply = bool (*)(const RawProduct& product, std::uint32_t row_begin,
                             std::uint32_t row_end, const Scratch& scratch);

// Runs the product where it can: with at most kMost rows of activations, or one less where a
// minimum is a tile more to transpose and as many operations more for a row of activations. False
// where another kernel has to.
template <class Format, std::uint32_t kMost>
bool multiply_by_rows(const RawProduct& product, std::uint32_t row_begin, std::uint32_t row_end,
                      const Scratch& scratch) {
  constexpr std::uint32_t kTokens =
      kMost > 1 && Format::kForm == CodeForm::minimum ? kMost - 1 : kMost;
  static_assert(kMost <= kRowTokens && kRowTokens == 4);
  const auto run = [&](auto rows) {
    if (!rows.fits()) return false;
    rows.run(row_begin, row_end);
    return true;
  };
  if (product.tokens == 1) return run(RowProduct<Format, 1>(product, scratch));
  if constexpr (kTokens >= 2) {
    if (product.tokens == 2) return run(RowProduct<Format, 2>(product, scratch));
  }
  if constexpr (kTokens >= 3) {
    if (product.tokens == 3) return run(RowProduct<Format, 3>(product, scratch));
  }
  if constexpr (kTokens >= 4) {
    if (product.tokens == 4) return run(RowProduct<Format, 4>(product, scratch));
  }
  return false;
}

}  // namespace
}  // namespace edgerunner::cpu
