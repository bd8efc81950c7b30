#pragma once

// A row of activations as the row kernels (row_product.h) want it. A group is S::kLanes blocks of
// 32 columns: its integer products are one vector with a block a lane.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/codes.h"
#include "backend/cpu/kernels/q8_block.h"

namespace edgerunner::cpu {
namespace {

template <class S>
struct alignas(64) RowGroup {
  std::int8_t q[8][4 * S::kLanes];      // beside the weights' codes, in their order
  std::int32_t offset[2][S::kLanes];    // Format::kOffset times the sum of each half, by lane
  std::int16_t half_sum[S::kLanes][2];  // by lane
  float scale[S::kLanes];               // by block
  float scaled_sum[S::kLanes];          // by block
  std::uint32_t counted;                // bit b: whether block b takes part
};

// The order in which the blocks of a group stand in vectors of codes and, once their products have
// been reduced, in lanes. A Layout gives block_of_piece(v, p) and half_of_piece(v, p): what the
// p-th 16 bytes of the v-th vector of codes belong to; and block_of_lane.
template <class Layout, int kLanes>
struct LaneOfBlock {
  int lane[kLanes]{};
  constexpr LaneOfBlock() {
    for (int l = 0; l < kLanes; ++l) lane[Layout::block_of_lane(l)] = l;
  }
};

// Takes in blocks b % kPeriod for the blocks b of a group: all of them in a row where the period is
// S::kLanes; the same few again and again where a group holds those columns of several weight rows.
template <class Format, int kPeriod>
inline void fill_group(const Q8Block* blocks, std::uint32_t counted,
                       RowGroup<typename Format::S>& group) {
  using S = typename Format::S;
  using Layout = typename Format::Layout;
  group.counted = counted;
#pragma GCC unroll 8
  for (int v = 0; v < 8; ++v) {
#pragma GCC unroll 4
    for (int piece = 0; piece < S::kLanes / 4; ++piece) {
      const Q8Block& block = blocks[Layout::block_of_piece(v, piece) % kPeriod];
      __builtin_memcpy(group.q[v] + 16 * piece, block.q + 16 * Layout::half_of_piece(v, piece), 16);
    }
  }
#pragma GCC unroll 16
  for (int lane = 0; lane < S::kLanes; ++lane) {
    const Q8Block& block = blocks[Layout::block_of_lane(lane) % kPeriod];
    for (int half = 0; half < 2; ++half) {
      group.offset[half][lane] = Format::kOffset * block.half_sum[half];
      group.half_sum[lane][half] = block.half_sum[half];
    }
    if constexpr (Format::kForm != CodeForm::half_scales && !Format::kHalfCodes) {
      group.offset[0][lane] += group.offset[1][lane];
    }
    group.scale[lane] = blocks[lane % kPeriod].scale;
    group.scaled_sum[lane] = blocks[lane % kPeriod].scaled_sum;
  }
}

}  // namespace
}  // namespace edgerunner::cpu
