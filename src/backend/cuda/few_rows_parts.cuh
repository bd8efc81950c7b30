#pragma once

#include <cstdint>

#include "backend/cuda/few_rows.h"

// How the kernels after a product of a few rows read it: they add its parts, always in the order of
// the columns.

namespace edgerunner::cuda {

// Where a tile's parts begin, and how many there are. It takes divisions to find out: the kernels
// of whole rows do so once a tile.
struct TileParts {
  std::uint32_t first;
  std::uint32_t count;
};
__device__ inline TileParts tile_parts(const UnitCut& cut, std::uint32_t tile) {
  const std::uint32_t unit = tile * cut.units;
  const std::uint32_t first = cut.block_of(unit);
  return {first + tile, cut.block_of(unit + cut.units - 1) - first + 1};
}

__device__ inline void add_to(float& sum, float x) { sum += x; }
__device__ inline void add_to(float4& sum, const float4& x) {
  sum.x += x.x;
  sum.y += x.y;
  sum.z += x.z;
  sum.w += x.w;
}
__device__ inline void multiply_by(float& x, float by) { x *= by; }
__device__ inline void multiply_by(float4& x, float by) {
  x.x *= by;
  x.y *= by;
  x.z *= by;
  x.w *= by;
}

// Elements at[0], at[1], ... of a row of the product, or, as float4, four neighbours from each of
// these multiples of four on; 0 at and past `end`. kAtOnce parts of each are on their way together:
// the trips to the L2 are what these kernels wait for.
template <int kAtOnce, typename Value, int kCount, typename PartsOf>
__device__ inline void product_at(const PartialProduct& p, std::uint32_t row,
                                  const std::uint32_t (&at)[kCount], std::uint32_t end,
                                  const PartsOf& parts_of, Value (&out)[kCount]) {
  const float scale = p.scale[row];
  std::uint32_t from[kCount];
  std::uint32_t count[kCount];
#pragma unroll
  for (int e = 0; e < kCount; ++e) {
    const bool inside = at[e] < end;
    const TileParts parts = parts_of(inside ? at[e] / kTileOutputs : 0);
    count[e] = inside ? parts.count : 0;
    from[e] = (parts.first * p.stride + row) * kTileOutputs + at[e] % kTileOutputs;
    out[e] = {};
  }
  const std::uint32_t most = p.cut.most_sharing();
  const std::uint32_t step = p.stride * kTileOutputs;
  for (std::uint32_t part = 0; part < most; part += kAtOnce) {
    Value value[kAtOnce][kCount];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
#pragma unroll
      for (int e = 0; e < kCount; ++e) {
        value[i][e] = {};
        if (part + i < count[e]) {
          value[i][e] =
              __ldcg(reinterpret_cast<const Value*>(p.parts + from[e] + (part + i) * step));
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
#pragma unroll
      for (int e = 0; e < kCount; ++e) add_to(out[e], value[i][e]);
    }
  }
#pragma unroll
  for (int e = 0; e < kCount; ++e) multiply_by(out[e], scale);
}

}  // namespace edgerunner::cuda
