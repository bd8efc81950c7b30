#pragma once

// The product over panels: a chunk of the columns of kPanels x kLanes weight rows is unpacked from
// the mapped file into scratch, a weight row a lane, and multiplied with all rows of activations by
// the tiles of panel_tile.h; chunk after chunk, while the sums stand in scratch. Decode is the same
// with few rows and a chunk that stays in the level 1 cache. Written once over a set of vector
// operations S, included by the translation unit of each instruction set.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/instruction_sets.h"
#include "backend/cpu/kernels/panel_chunk.h"
#include "backend/cpu/kernels/panel_kernel.h"
#include "backend/cpu/kernels/scratch.h"
#include "backend/cpu/kernels/silu.h"

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

// `term_sums` is null where there are none.
template <class S>
void finish(const RawProduct& product, std::uint32_t first_token, std::uint32_t tokens,
            std::uint32_t row, std::uint32_t rows, std::uint32_t panels, const float* sums,
            const float* term_sums) {
  for (std::uint32_t t = 0; t < tokens; ++t) {
    for (std::uint32_t lane = 0; lane < rows; lane += S::kLanes) {
      const std::uint32_t count = rows - lane;
      const std::size_t at = std::size_t{t} * panels * S::kLanes + lane;
      typename S::F s = S::load(sums + at);
      if (term_sums != nullptr) s = S::add(s, S::load(term_sums + at));
      if (product.bias != nullptr) s = S::add(s, S::load_first(product.bias + row + lane, count));
      float* y = product.out + (first_token + t) * product.out_stride + row + lane;
      if (product.epilogue == Epilogue::add) {
        s = S::add(S::load_first(y, count), s);
      } else if (product.epilogue == Epilogue::silu_multiply) {
        s = S::mul(silu<S>(S::load_first(y, count)), s);
      } else if (product.epilogue == Epilogue::gelu_multiply) {
        s = S::mul(gelu<S>(S::load_first(y, count)), s);
      }
      S::store_first(y, s, count);
    }
  }
}

template <class S>
void multiply_panels(const RawProduct& product, const PanelKernel<S>& kernel,
                     std::uint32_t row_begin, std::uint32_t row_end, const Scratch& scratch) {
  const std::uint32_t steps = (product.cols + kernel.step_columns - 1) / kernel.step_columns;
  constexpr std::uint32_t kRows = S::kPanels * S::kLanes;
  const bool has_terms = product.format == ActivationFormat::q8;
  const Q8Block* next_terms[kGroupTokens];
  for (std::uint32_t row = row_begin; row < row_end; row += kRows) {
    const std::uint32_t rows = row_end - row < kRows ? row_end - row : kRows;
    const std::uint32_t panels = (rows + S::kLanes - 1) / S::kLanes;
    const std::size_t stride = panels * kernel.record_bytes;
    for (std::uint32_t group = 0; group < product.tokens; group += kGroupTokens) {
      const std::uint32_t tokens =
          product.tokens - group < kGroupTokens ? product.tokens - group : kGroupTokens;
      const std::uint32_t chunk = chunk_steps(kernel, tokens);
      const std::byte* x = product.x + group * product.x_stride;
      __builtin_memset(scratch.sums, 0, sizeof(float) * tokens * panels * S::kLanes);
      if (has_terms) {
        __builtin_memset(scratch.term_sums, 0, sizeof(float) * tokens * panels * S::kLanes);
        for (std::uint32_t t = 0; t < tokens; ++t) {
          next_terms[t] = q8_terms(x + t * product.x_stride, steps);
        }
      }
      for (std::uint32_t first = 0; first < steps;) {
        // A rest of a few steps goes with the chunk before it.
        const std::uint32_t left = steps - first;
        const std::uint32_t count = left < chunk + kSlackSteps ? left : chunk;
        for (std::uint32_t p = 0; p < panels; ++p) {
          PanelSource<S> source{
              product.type, product.cols, {}, tokens <= kFewTokens ? kRows * product.row_bytes : 0};
          for (std::uint32_t lane = 0; lane < S::kLanes; ++lane) {
            const std::uint32_t r = row + p * S::kLanes + lane;
            source.rows[lane] =
                product.weights + (r < product.rows ? r : product.rows - 1) * product.row_bytes;
          }
          kernel.unpack(source, first, count, scratch.panel + p * kernel.record_bytes, stride,
                        scratch.temporary);
        }
        add_chunk(kernel, scratch.panel, panels, first, count, x, product.x_stride, tokens,
                  scratch.sums);
        if (has_terms) {
          const ChunkTerms terms{x, product.x_stride, tokens, steps, next_terms};
          add_terms(kernel, scratch.panel, panels, first, count, terms, scratch.term_sums);
        }
        first += count;
      }
      finish<S>(product, group, tokens, row, rows, panels, scratch.sums,
                has_terms ? scratch.term_sums : nullptr);
    }
  }
}

}  // namespace
}  // namespace edgerunner::cpu
