#pragma once

// The product over panels: a chunk of the columns of kPanels x kLanes weight rows is unpacked from
// the mapped file into scratch, a weight row a lane, and multiplied with all rows of activations by
// the tiles of panel_tile.h; chunk after chunk, while the sums stand in scratch. Decode is the same
// with few rows and a chunk that stays in the level 1 cache. Written once over a set of vector
// operations S, included by the translation unit of each instruction set.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/instruction_sets.h"
#include "backend/cpu/kernels/outputs.h"
#include "backend/cpu/kernels/panel_chunk.h"
#include "backend/cpu/kernels/panel_kernel.h"
#include "backend/cpu/kernels/scratch.h"

namespace edgerunner::cpu {
namespace {

// Steps of a chunk: a multiple of 256 columns, as the K formats' blocks want it, and what fits the
// cache that the panel is to stay in.
template <class S>
std::uint32_t chunk_steps(const PanelKernel<S>& kernel, std::uint32_t tokens) {
  const std::size_t bytes = tokens <= kFewTokens ? kSmallPanelBytes : kLargePanelBytes;
  const std::uint32_t granule = 256 / kernel.step_columns;
  const auto steps = static_cast<std::uint32_t>(bytes / (S::kPanels * kernel.record_bytes));
  return steps < granule ? granule : steps / granule * granule;
}

template <class S>
using FindKernel = const PanelKernel<S>& (*)(ElementType type, ActivationFormat format);

// Products over panels with a group of rows of activations, at most kGroupTokens.
template <class S>
class PanelGroup {
 public:
  static constexpr std::uint32_t kRows = S::kPanels * S::kLanes;

  PanelGroup(const RawProduct& product, std::uint32_t first_token, const Scratch& scratch)
      : first_token_(first_token),
        tokens_(product.tokens - first_token < kGroupTokens ? product.tokens - first_token
                                                            : kGroupTokens),
        x_(product.x + first_token * product.x_stride),
        x_stride_(product.x_stride),
        has_terms_(product.format == ActivationFormat::q8),
        masks_{scratch.step_masks},
        scratch_(scratch) {
    if (!has_terms_) return;
    const std::uint64_t name = tokens_ == product.tokens ? product.operand : 0;
    if (scratch.holds_masks(name, tokens_)) return;
    masks_.fill(x_, x_stride_, tokens_, product.cols / kQ8Length);
  }

  // Up to kRows outputs from `row` on.
  void run(const RawProduct& product, FindKernel<S> find, std::uint32_t row,
           std::uint32_t rows) const {
    store_outputs<S>(
        product, first_token_, tokens_, row, rows, sums_of(rows), scratch_,
        [&](const RawProduct& of) { add_all(of, find(of.type, of.format), row, rows); });
  }

 private:
  static std::uint32_t panels_of(std::uint32_t rows) { return (rows + S::kLanes - 1) / S::kLanes; }
  PanelSums sums_of(std::uint32_t rows) const {
    return {scratch_.sums, has_terms_ ? scratch_.term_sums : nullptr, panels_of(rows) * S::kLanes};
  }

  // All columns of rows [row, row + rows), chunk after chunk, into the sums.
  void add_all(const RawProduct& product, const PanelKernel<S>& kernel, std::uint32_t row,
               std::uint32_t rows) const {
    const std::uint32_t steps = (product.cols + kernel.step_columns - 1) / kernel.step_columns;
    const std::uint32_t panels = panels_of(rows);
    const std::uint32_t chunk = chunk_steps(kernel, tokens_);
    __builtin_memset(scratch_.sums, 0, sizeof(float) * tokens_ * panels * S::kLanes);
    if (has_terms_) {
      __builtin_memset(scratch_.term_sums, 0, sizeof(float) * tokens_ * panels * S::kLanes);
    }
    for (std::uint32_t first = 0; first < steps;) {
      // A rest of a few steps goes with the chunk before it.
      const std::uint32_t left = steps - first;
      const std::uint32_t count = left < chunk + kSlackSteps ? left : chunk;
      for (std::uint32_t p = 0; p < panels; ++p) {
        PanelSource<S> source{product.type, product.cols, {}, kRows * product.row_bytes};
        for (std::uint32_t lane = 0; lane < S::kLanes; ++lane) {
          const std::uint32_t r = row + p * S::kLanes + lane;
          source.rows[lane] =
              product.weights + (r < product.rows ? r : product.rows - 1) * product.row_bytes;
        }
        kernel.unpack(source, first, count, scratch_.panel + p * kernel.record_bytes,
                      panels * kernel.record_bytes, scratch_.temporary);
      }
      add_chunk(kernel, scratch_.panel, panels, first, count, x_, x_stride_, tokens_,
                scratch_.sums);
      if (has_terms_) {
        add_terms(kernel, scratch_.panel, panels, first, count, masks_, tokens_,
                  x_ + q8_terms_offset(steps), x_stride_, scratch_.term_sums);
      }
      first += count;
    }
  }

  std::uint32_t first_token_;
  std::uint32_t tokens_;
  const std::byte* x_;
  std::size_t x_stride_;
  bool has_terms_;
  TermMasks masks_;
  const Scratch& scratch_;
};

template <class S>
void multiply_panels(const RawProduct& product, FindKernel<S> find, std::uint32_t row_begin,
                     std::uint32_t row_end, const Scratch& scratch) {
  *scratch.laid_out = {};
  constexpr std::uint32_t kRows = PanelGroup<S>::kRows;
  for (std::uint32_t first = 0; first < product.tokens; first += kGroupTokens) {
    const PanelGroup<S> group(product, first, scratch);
    for (std::uint32_t row = row_begin; row < row_end; row += kRows) {
      const std::uint32_t rows = row_end - row < kRows ? row_end - row : kRows;
      group.run(product, find, row, rows);
    }
  }
}

}  // namespace
}  // namespace edgerunner::cpu
