#include "backend/cuda/chain.cuh"
#include "backend/cuda/few_rows_fetch.cuh"
#include "backend/cuda/few_rows_units.cuh"
#include "backend/cuda/matmul_rows.h"
#include "backend/cuda/mma.cuh"
#include "backend/cuda/ptx.cuh"

// A few rows' product before Hopper, on sm_80 and later. A block of 16 warps takes a unit at a
// time: eight warps side by side have 32 outputs each, and two groups of them have 64 columns each.

namespace edgerunner::cuda {
namespace {

constexpr int kRows = static_cast<int>(kLittleRows);
constexpr int kStages = 2;  // one is read while the other fills: more would not fit kLittleShared
constexpr int kLittleShared = 99 * 1024;  // of a block, on every device of sm_80 and later
constexpr int kXStride = kCols * 2 + 16;  // bytes of a row of activations: neighbours miss each
                                          // other's banks

template <ElementType T>
struct Sizes {
  static constexpr int kX = UnitPlaces<T>::kBytes;
  static constexpr int kStage = kX + kRows * kXStride;
  static constexpr int kReduce = kTile * kRows * 4;
  static constexpr int kAll = kStages * kStage + kReduce;
};

template <ElementType T>
__global__ void __launch_bounds__(kRowsThreads, 1)
    rows_kernel(const __grid_constant__ RowsArguments m) {
  using Unit = UnitOf<T>;
  using Size = Sizes<T>;
  constexpr int kTilesN = kRows / 8;
  extern __shared__ __align__(128) std::uint8_t shared[];
  const int lane = static_cast<int>(threadIdx.x & 31);
  const int warp = static_cast<int>(threadIdx.x / 32);
  const int c = lane & 3;
  const int row_of_lane = Unit::row_of(lane >> 2);  // of eight
  const int side = warp & 7;                        // 32 outputs of the tile
  const int group = warp >> 3;                      // 64 columns of the unit
  const std::uint32_t base = shared_address(shared);
  const std::uint32_t begin = m.cut.begin(blockIdx.x);
  const std::uint32_t end = m.cut.begin(blockIdx.x + 1);

  UnitFetch<T> weights(m, begin);
  constexpr int kXPieces = kCols / 8;
  static_assert(kRows * kXPieces <= kRowsThreads);
  const auto fetch = [&](std::uint32_t stage) {
    const std::uint32_t k = weights.next(base + stage * Size::kStage);
    const std::uint32_t row = threadIdx.x / kXPieces;
    const std::uint32_t piece = threadIdx.x % kXPieces;
    if (row < kRows) {
      copy_16(base + stage * Size::kStage + Size::kX + row * kXStride + piece * 16,
              m.x.x + static_cast<std::size_t>(row) * m.w.cols + k + piece * 8,
              row < m.rows && k + piece * 8 < m.w.cols);
    }
    copy_commit();
  };

  float sum[2][kTilesN][4] = {};
  std::uint32_t tile = begin / m.cut.units;
  std::uint32_t k = begin - tile * m.cut.units;
  std::uint32_t stage = 0;
  let_next_begin();
  wait_for_previous();
  fetch(0);
  for (std::uint32_t unit = begin; unit < end; ++unit) {
    copy_wait<0>();
    __syncthreads();
    if (unit + 1 < end) fetch(stage ^ 1U);
    const std::uint8_t* const codes = shared + stage * Size::kStage;
    const std::uint32_t x = base + stage * Size::kStage + Size::kX;
    std::uint32_t a[2][2][8];
#pragma unroll
    for (int t = 0; t < 2; ++t) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        Unit::weights(codes, codes + UnitPlaces<T>::kHeaders,
                      side * 32 + t * 16 + h * 8 + row_of_lane, group, c, static_cast<int>(k & 3),
                      a[t][h]);
      }
    }
#pragma unroll
    for (int n = 0; n < kTilesN; ++n) {
      // Eight rows by eight columns are a matrix: four of them lie beside each other.
      const std::uint32_t from =
          x + (8 * n + (lane & 7)) * kXStride + group * 128 + (lane >> 3) * 16;
      std::uint32_t b0[4];
      std::uint32_t b1[4];
      load_matrices(b0, from);
      load_matrices(b1, from + 64);
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        const auto& low = a[t][0];
        const auto& high = a[t][1];
        mma_f16(sum[t][n], low[0], high[0], low[1], high[1], b0[0], b0[1]);
        mma_f16(sum[t][n], low[2], high[2], low[3], high[3], b0[2], b0[3]);
        mma_f16(sum[t][n], low[4], high[4], low[5], high[5], b1[0], b1[1]);
        mma_f16(sum[t][n], low[6], high[6], low[7], high[7], b1[2], b1[3]);
      }
    }
    stage ^= 1U;
    if (++k != m.cut.units && unit + 1 != end) continue;

    // The part is complete: the groups' halves are added in shared memory.
    float* const reduce = reinterpret_cast<float*>(shared + kStages * Size::kStage) +
                          side * (kTilesN * 8 * 32) + lane;
    if (group == 1) {
#pragma unroll
      for (int i = 0; i < kTilesN * 8; ++i) {
        reduce[i * 32] = sum[i / (4 * kTilesN)][i / 4 % kTilesN][i % 4];
      }
    }
    __syncthreads();
    if (group == 0) {
      float* const to = m.parts + static_cast<std::size_t>(blockIdx.x + tile) * kRows * kTile +
                        side * 32 + row_of_lane;
#pragma unroll
      for (int i = 0; i < kTilesN * 8; ++i) {
        const int t = i / (4 * kTilesN);
        const int n = i / 4 % kTilesN;
        const std::uint32_t row = 8 * n + 2 * c + (i & 1);
        if (row < m.rows) {
          to[row * kTile + t * 16 + (i >> 1 & 1) * 8] = sum[t][n][i % 4] + reduce[i * 32];
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kTilesN * 8; ++i) sum[i / (4 * kTilesN)][i / 4 % kTilesN][i % 4] = 0;
    k = 0;
    ++tile;
  }
}

}  // namespace

void launch_matmul_rows_mma(const RowsArguments& arguments, cudaStream_t stream) {
  visit_few_rows_type(arguments.w.type, [&](auto type) {
    constexpr ElementType kType = decltype(type)::value;
    static_assert(Sizes<kType>::kAll <= kLittleShared);
    const auto kernel = rows_kernel<kType>;
    static const cudaError_t allowed = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Sizes<kType>::kAll);
    static_cast<void>(allowed);  // a launch says what is wrong
    launch_chained(kernel, dim3(arguments.cut.blocks), kRowsThreads, Sizes<kType>::kAll, stream,
                   arguments);
  });
}

}  // namespace edgerunner::cuda
