#pragma once

// A chunk of weights, unpacked, times all rows of activations: first their blocks, then the second
// terms that some of the blocks have. Written once over a set of vector operations S, included by
// the translation unit of each instruction set.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/panel_kernel.h"
#include "backend/cpu/kernels/q8_block.h"

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

// Where the second terms of a chunk's rows stand.
struct ChunkTerms {
  const std::byte* x;  // [tokens, row_stride]
  std::size_t row_stride;
  std::uint32_t tokens;
  std::uint32_t blocks;  // of a whole row
  // [tokens]: each row's first term that has not been added yet
  const Q8Block** next;

  // Of kTogether rows from `begin` on, which have terms for the 64 blocks of word `word` of the
  // masks: bit t of by_step[s] is row begin + t's. Returns the steps that any has.
  std::uint64_t masks(std::uint32_t begin, std::uint32_t count, std::uint32_t word,
                      std::uint64_t (&by_step)[64]) const {
    std::uint64_t any = 0;
    for (std::uint32_t t = 0; t < count; ++t) {
      by_step[t] = q8_mask(x + (begin + t) * row_stride, blocks)[word];
      any |= by_step[t];
    }
    if (any == 0) return 0;
    for (std::uint32_t t = count; t < 64; ++t) by_step[t] = 0;
    transpose_bits(by_step);
    return any;
  }
};

// Adds the products of the second terms of steps [first, first + steps) to the sums, [tokens,
// panels * S::kLanes].
template <class S>
void add_terms(const PanelKernel<S>& kernel, const std::uint8_t* panel, std::uint32_t panels,
               std::uint32_t first, std::uint32_t steps, const ChunkTerms& terms, float* sums) {
  const std::size_t record = panels * kernel.record_bytes;
  for (std::uint32_t begin = 0; begin < terms.tokens; begin += kTogether) {
    const std::uint32_t count = terms.tokens - begin < kTogether ? terms.tokens - begin : kTogether;
    const Q8Block** next = terms.next + begin;
    float* group_sums = sums + std::size_t{begin} * panels * S::kLanes;
    // A chunk begins and ends anywhere in a word of the masks.
    for (std::uint32_t word = first / 64; word <= (first + steps - 1) / 64; ++word) {
      std::uint64_t by_step[64];
      std::uint64_t left = terms.masks(begin, count, word, by_step);
      if (64 * word < first) left &= ~std::uint64_t{0} << (first % 64);
      for (; left != 0; left &= left - 1) {
        const auto bit = static_cast<std::uint32_t>(__builtin_ctzll(left));
        const std::uint32_t step = 64 * word + bit - first;
        if (step >= steps) break;
        const std::byte* rows[kTogether];
        float* row_sums[kTogether];
        std::uint32_t refined = 0;
        for (std::uint64_t which = by_step[bit]; which != 0; which &= which - 1) {
          const auto t = static_cast<std::uint32_t>(__builtin_ctzll(which));
          rows[refined] = reinterpret_cast<const std::byte*>(next[t]++);
          row_sums[refined] = group_sums + std::size_t{t} * panels * S::kLanes;
          ++refined;
        }
        run_tiles(kernel, panel + step * record, panels, 1, rows, row_sums, refined);
      }
    }
  }
}

}  // namespace
}  // namespace edgerunner::cpu
