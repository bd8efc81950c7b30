#include "backend/cuda/mma.cuh"
#include "backend/cuda/prefill_ops.h"
#include "backend/cuda/ptx.cuh"

// The tensor cores' matrix product, through mma.sync: runs on sm_80 and later. A block makes a tile
// of kRows x kOutputs; eight warps, two by four, make 64 x kOutputs / 4 each. Tiles of kDepth
// columns pass through a ring in shared memory, their 16-byte chunks permuted so that neither the
// copies in nor ldmatrix out meet a bank twice.

namespace edgerunner::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kRows = 128;
constexpr int kDepth = 64;           // a row of a tile is 128 bytes, all 32 banks
constexpr int kChunks = kDepth / 8;  // of 16 bytes
constexpr int kRowBytes = kDepth * 2;

__device__ inline std::uint32_t chunk_at(int row, int chunk) {
  return static_cast<std::uint32_t>(row * kRowBytes + ((chunk ^ (row & 7)) << 4));
}

template <int kOutputs, int kStages>
__global__ void __launch_bounds__(kThreads) matmul_kernel(HalfMatmul m) {
  extern __shared__ __align__(128) std::uint8_t shared[];
  constexpr int kWarpOutputs = kOutputs / 4;
  constexpr int kTilesM = 64 / 16;
  constexpr int kTilesN = kWarpOutputs / 8;
  constexpr int kStageBytes = (kRows + kOutputs) * kRowBytes;
  const int lane = static_cast<int>(threadIdx.x & 31);
  const int warp = static_cast<int>(threadIdx.x / 32);
  const int warp_row = (warp & 1) * 64;
  const int warp_output = (warp >> 1) * kWarpOutputs;
  const std::uint32_t row0 = blockIdx.x * kRows;
  const std::uint32_t output0 = blockIdx.y * kOutputs;
  const std::uint32_t base = shared_address(shared);
  const int depth_tiles = static_cast<int>((m.cols + kDepth - 1) / kDepth);

  const auto fetch = [&](int tile) {
    const std::uint32_t stage = base + static_cast<std::uint32_t>(tile % kStages) * kStageBytes;
#pragma unroll
    for (int i = 0; i < (kRows + kOutputs) * kChunks / kThreads; ++i) {
      const int index = i * kThreads + static_cast<int>(threadIdx.x);
      const int row = index / kChunks;
      const int chunk = index % kChunks;
      const std::uint32_t k = static_cast<std::uint32_t>(tile * kDepth + chunk * 8);
      const bool is_x = row < kRows;
      const std::uint32_t global = is_x ? row0 + row : output0 + row - kRows;
      const bool used = k < m.cols && global < (is_x ? m.rows : m.outputs);
      const __half* const from =
          (is_x ? m.x.x : m.w) + (used ? static_cast<std::size_t>(global) * m.cols + k : 0);
      copy_16(stage + chunk_at(row, chunk), from, used);
    }
  };

  float sum[kTilesM][kTilesN][4] = {};
#pragma unroll
  for (int tile = 0; tile < kStages - 1; ++tile) {
    if (tile < depth_tiles) fetch(tile);
    copy_commit();
  }
  for (int tile = 0; tile < depth_tiles; ++tile) {
    copy_wait<kStages - 2>();
    __syncthreads();
    if (tile + kStages - 1 < depth_tiles) fetch(tile + kStages - 1);
    copy_commit();
    const std::uint32_t x = base + static_cast<std::uint32_t>(tile % kStages) * kStageBytes;
    const std::uint32_t w = x + kRows * kRowBytes;
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k) {
      std::uint32_t a[kTilesM][4];
      std::uint32_t b[kTilesN / 2][4];
#pragma unroll
      for (int i = 0; i < kTilesM; ++i) {
        load_matrices(a[i], x + chunk_at(warp_row + 16 * i + (lane & 15), 2 * k + (lane >> 4)));
      }
#pragma unroll
      for (int j = 0; j < kTilesN / 2; ++j) {
        const int row = warp_output + 16 * j + (lane & 7) + ((lane >> 4) << 3);
        load_matrices(b[j], w + chunk_at(row, 2 * k + ((lane >> 3) & 1)));
      }
#pragma unroll
      for (int i = 0; i < kTilesM; ++i) {
#pragma unroll
        for (int j = 0; j < kTilesN; ++j) {
          mma_f16(sum[i][j], a[i][0], a[i][1], a[i][2], a[i][3], b[j / 2][2 * (j & 1)],
                  b[j / 2][2 * (j & 1) + 1]);
        }
      }
    }
  }
  copy_wait<0>();

#pragma unroll
  for (int i = 0; i < kTilesM; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t row = row0 + warp_row + 16 * i + 8 * half + (lane >> 2);
      if (row >= m.rows) continue;
      const float scale = m.x.scale[row];
      float* const y = m.y + static_cast<std::size_t>(row) * m.y_stride;
#pragma unroll
      for (int j = 0; j < kTilesN; ++j) {
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          const std::uint32_t output = output0 + warp_output + 8 * j + 2 * (lane & 3) + k;
          if (output >= m.outputs) continue;
          float value = sum[i][j][2 * half + k] * scale;
          if (m.bias != nullptr) value += m.bias[output];
          if (m.add) value += y[output];
          y[output] = value;
        }
      }
    }
  }
}

template <int kOutputs, int kStages>
void launch(const HalfMatmul& m, cudaStream_t stream) {
  constexpr int kBytes = kStages * (kRows + kOutputs) * kRowBytes;
  cudaFuncSetAttribute(matmul_kernel<kOutputs, kStages>,
                       cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  const dim3 grid((m.rows + kRows - 1) / kRows, (m.outputs + kOutputs - 1) / kOutputs);
  matmul_kernel<kOutputs, kStages><<<grid, kThreads, kBytes, stream>>>(m);
}

}  // namespace

void launch_matmul_half(const HalfMatmul& m, cudaStream_t stream) {
  // The wide tile reads shared memory less, the narrow one makes more blocks: it takes over where
  // the wide one would leave multiprocessors idle. 96 KiB of shared memory either way at least.
  const std::uint32_t wide_blocks = ((m.rows + kRows - 1) / kRows) * ((m.outputs + 255) / 256);
  constexpr std::uint32_t kEnoughBlocks = 200;
  if (wide_blocks >= kEnoughBlocks) {
    launch<256, 3>(m, stream);
  } else {
    launch<128, 3>(m, stream);
  }
}

}  // namespace edgerunner::cuda
