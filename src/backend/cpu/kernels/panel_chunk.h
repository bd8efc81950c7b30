#pragma once

// A chunk of weights, unpacked, times all rows of activations: first their blocks, then the second
// terms that some of the blocks have. Written once over a set of vector operations S, included by
// the translation unit of each instruction set.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/panel_kernel.h"
#include "backend/cpu/kernels/q8_block.h"
#include "backend/cpu/kernels/scratch.h"

namespace edgerunner::cpu {
namespace {

// Runs a chunk's tiles over any number of rows of activations; `x` and `sums` as for a tile.
template <class S>
void run_tiles(const PanelKernel<S>& kernel, const std::uint8_t* panel, std::uint32_t panels,
               std::uint32_t steps, const std::byte* const* x, float* const* sums,
               std::uint32_t tokens) {
  const auto most = static_cast<std::uint32_t>(kernel.max_tokens);
  const std::uint32_t tiles = (tokens + most - 1) / most;
  std::uint32_t begin = 0;
  for (std::uint32_t i = 0; i < tiles; ++i) {  // of nearly equal sizes
    const std::uint32_t end = tokens * (i + 1) / tiles;
    kernel.tiles[panels - 1][end - begin - 1](panel, steps, x + begin, sums + begin);
    begin = end;
  }
}

// Rows of activations that are taken together: their pointers stay in the level 1 cache, and full
// tiles of 6 and of 4 fill them.
constexpr std::uint32_t kTogether = 60;

// Adds the products of steps [first, first + steps) to the sums, [tokens, panels * S::kLanes].
template <class S>
void add_chunk(const PanelKernel<S>& kernel, const std::uint8_t* panel, std::uint32_t panels,
               std::uint32_t first, std::uint32_t steps, const std::byte* x, std::size_t row_stride,
               std::uint32_t tokens, float* sums) {
  for (std::uint32_t begin = 0; begin < tokens; begin += kTogether) {
    const std::uint32_t count = tokens - begin < kTogether ? tokens - begin : kTogether;
    const std::byte* rows[kTogether];
    float* row_sums[kTogether];
    for (std::uint32_t t = 0; t < count; ++t) {
      rows[t] = x + (begin + t) * row_stride + first * kernel.step_activation_bytes;
      row_sums[t] = sums + std::size_t{begin + t} * panels * S::kLanes;
    }
    run_tiles(kernel, panel, panels, steps, rows, row_sums, count);
  }
}

// Bit s of row t becomes bit t of row s.
inline void transpose_bits(std::uint64_t (&rows)[64]) {
  std::uint64_t low = 0x00000000FFFFFFFF;
  for (int half = 32; half != 0; half /= 2, low ^= low << half) {
    for (int base = 0; base < 64; base += 2 * half) {
      for (int i = base; i < base + half; ++i) {
        const std::uint64_t swap = ((rows[i] >> half) ^ rows[i + half]) & low;
        rows[i] ^= swap << half;
        rows[i + half] ^= swap;
      }
    }
  }
}

// Which of a group's rows of activations have a second term at each step of the columns: bit t % 64
// of word t / 64 is row t's.
struct TermMasks {
  std::uint64_t (*of_step)[kGroupTokens / 64];  // [steps]

  // Rows of `blocks` blocks, row_stride bytes apart.
  void fill(const std::byte* x, std::size_t row_stride, std::uint32_t tokens,
            std::uint32_t blocks) const {
    for (std::uint32_t begin = 0; begin < tokens; begin += 64) {
      const std::uint32_t count = tokens - begin < 64 ? tokens - begin : 64;
      for (std::uint32_t word = 0; word < q8_mask_words(blocks); ++word) {
        std::uint64_t masks[64] = {};
        std::uint64_t any = 0;
        for (std::uint32_t t = 0; t < count; ++t) {
          any |= masks[t] = q8_mask(x + (begin + t) * row_stride, blocks)[word];
        }
        if (any != 0) transpose_bits(masks);
        const std::uint32_t steps = blocks - 64 * word < 64 ? blocks - 64 * word : 64;
        for (std::uint32_t s = 0; s < steps; ++s) of_step[64 * word + s][begin / 64] = masks[s];
      }
    }
  }
};

// Adds the products of the second terms of steps [first, first + steps) to the sums, [tokens,
// panels * S::kLanes]. `terms` is where the first row's terms stand.
template <class S>
void add_terms(const PanelKernel<S>& kernel, const std::uint8_t* panel, std::uint32_t panels,
               std::uint32_t first, std::uint32_t steps, const TermMasks& masks,
               std::uint32_t tokens, const std::byte* terms, std::size_t row_stride, float* sums) {
  const std::byte* rows[kGroupTokens];
  float* row_sums[kGroupTokens];
  for (std::uint32_t step = 0; step < steps; ++step) {
    std::uint32_t count = 0;
    for (std::uint32_t begin = 0; begin < tokens; begin += 64) {
      for (std::uint64_t left = masks.of_step[first + step][begin / 64]; left != 0;
           left &= left - 1) {
        const std::uint32_t t = begin + static_cast<std::uint32_t>(__builtin_ctzll(left));
        rows[count] = terms + t * row_stride + (first + step) * sizeof(Q8Block);
        row_sums[count++] = sums + std::size_t{t} * panels * S::kLanes;
      }
    }
    if (count == 0) continue;
    run_tiles(kernel, panel + step * panels * kernel.record_bytes, panels, 1, rows, row_sums,
              count);
  }
}

}  // namespace
}  // namespace edgerunner::cpu
