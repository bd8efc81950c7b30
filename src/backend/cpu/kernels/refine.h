#pragma once

// Which blocks of a row in 8 bits get a second term. One rule for all instruction sets, decided on
// the blocks' scales, which are the same bits in all.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/q8_block.h"
#include "backend/cpu/matmul.h"

namespace edgerunner::cpu {
namespace {

// A block's rounding error is of the order of its scale, so what a block adds to the squared error
// of a product goes with the square of it: a block is refined where that exceeds so many times the
// row's mean. At most 1 / kOutlierRatio of the blocks of a row exceed kOutlierRatio times the mean.
inline constexpr double kOutlierRatio = 8;
inline constexpr double kMostRatio = 0.5;

// Writes the second terms of a row of blocks, by refine(b, block, term) for each.
template <class Refine>
inline void add_terms(Refinement refinement, std::byte* row, std::uint32_t blocks, Refine refine) {
  const auto* block = reinterpret_cast<const Q8Block*>(row);
  auto* mask = reinterpret_cast<std::uint64_t*>(row + q8_mask_offset(blocks));
  auto* terms = reinterpret_cast<Q8Block*>(row + q8_terms_offset(blocks));
  double sum = 0;
  for (std::uint32_t b = 0; b < blocks; ++b) sum += double{block[b].scale} * block[b].scale;
  const double ratio = refinement == Refinement::most ? kMostRatio : kOutlierRatio;
  const double least = ratio * sum / blocks;
  for (std::uint32_t word = 0; word < q8_mask_words(blocks); ++word) {
    std::uint64_t bits = 0;
    const std::uint32_t end = blocks - 64 * word < 64 ? blocks : 64 * word + 64;
    for (std::uint32_t b = 64 * word; b < end; ++b) {
      if (double{block[b].scale} * block[b].scale > least) {  // never where one is not a number
        bits |= std::uint64_t{1} << (b % 64);
        refine(b, block[b], terms[b]);
      }
    }
    mask[word] = bits;
  }
}

}  // namespace
}  // namespace edgerunner::cpu
