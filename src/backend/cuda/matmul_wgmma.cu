#include "backend/cuda/mma.cuh"
#include "backend/cuda/prefill_ops.h"
#include "backend/cuda/ptx.cuh"
#include "backend/cuda/wgmma.cuh"

// The matrix product on Hopper, at twice the rate of mma.sync (matmul_half.cu, which other devices
// use). Two warpgroups make 64 rows each of a tile of 128 rows; tiles of kDepth columns pass
// through a ring in shared memory in the layout that the matrix units read.

namespace edgerunner::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kRows = 128;
constexpr int kDepth = 64;  // a row of a tile is 128 bytes: the widest permutation
constexpr int kRowBytes = kDepth * 2;

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900 && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#error "Hopper's matrix products need the target 90a, not 90"
#endif

// kGated: outputs are silu(gate) * up; the first `outputs` rows of w are gate's, then come up's. A
// tile holds eight of each in turn, so a thread that has a gate has its up as well.
template <int kOutputs, int kStages, int kBlocks, bool kGated>
__global__ void __launch_bounds__(kThreads, kBlocks)
    wgmma_kernel(const __grid_constant__ HalfMatmul m) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) std::uint8_t shared[];
  constexpr int kStageBytes = (kRows + kOutputs) * kRowBytes;
  constexpr std::uint32_t kTileOutputs = kGated ? kOutputs / 2 : kOutputs;
  const int lane = static_cast<int>(threadIdx.x & 31);
  const std::uint32_t row0 = blockIdx.x * kRows;
  const std::uint32_t output0 = blockIdx.y * kTileOutputs;
  const std::uint32_t base = shared_address(shared);
  const int tiles = static_cast<int>((m.cols + kDepth - 1) / kDepth);

  // This thread's chunks of a tile: the same column of every 32nd row.
  constexpr int kChunks = kDepth / 8;
  const int chunk = static_cast<int>(threadIdx.x) % kChunks;
  const int first_row = static_cast<int>(threadIdx.x) / kChunks;
  constexpr int kRowStep = kThreads / kChunks;
  static_assert(kRowStep % 8 == 0 && kRows % kRowStep == 0);
  const std::uint32_t place =
      static_cast<std::uint32_t>(first_row * kRowBytes + ((chunk ^ (first_row & 7)) << 4));
  const auto fetch = [&](int tile) {
    if (tile >= tiles) return;
    const std::uint32_t stage = base + static_cast<std::uint32_t>(tile % kStages) * kStageBytes;
    const std::uint32_t k = static_cast<std::uint32_t>(tile * kDepth + chunk * 8);
    const bool inside = k < m.cols;
#pragma unroll
    for (int i = 0; i < kRows / kRowStep; ++i) {
      const std::uint32_t row = row0 + first_row + i * kRowStep;
      const bool used = inside && row < m.rows;
      copy_16(stage + place + i * kRowStep * kRowBytes,
              m.x.x + (used ? static_cast<std::size_t>(row) * m.cols + k : 0), used);
    }
#pragma unroll
    for (int i = 0; i < kOutputs / kRowStep; ++i) {
      const std::uint32_t local = first_row + i * kRowStep;
      std::uint32_t output = output0 + local;
      bool used = inside && output < m.outputs;
      if constexpr (kGated) {
        output = output0 + local / 16 * 8 + local % 8;
        used = inside && output < m.outputs;
        if (local % 16 >= 8) output += m.outputs;
      }
      copy_16(stage + kRows * kRowBytes + place + i * kRowStep * kRowBytes,
              m.w + (used ? static_cast<std::size_t>(output) * m.cols + k : 0), used);
    }
  };

  float sum[kOutputs / 2] = {};
  const std::uint32_t group_rows = threadIdx.x / 128 * 64 * kRowBytes;
#pragma unroll
  for (int tile = 0; tile < kStages - 2; ++tile) {
    fetch(tile);
    copy_commit();
  }
  for (int tile = 0; tile < tiles; ++tile) {
    copy_wait<kStages - 3>();
    shared_proxy_fence();
    // Both warpgroups are past the products of the tile before the last: its stage is free.
    __syncthreads();
    fetch(tile + kStages - 2);
    copy_commit();
    const std::uint32_t stage = base + static_cast<std::uint32_t>(tile % kStages) * kStageBytes;
    const std::uint64_t x = wgmma_tile(stage + group_rows);
    const std::uint64_t w = wgmma_tile(stage + kRows * kRowBytes);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k) wgmma_f16(sum, x + 2 * k, w + 2 * k);
    wgmma_commit();
    // Where two blocks share a multiprocessor, the other one fills the pause.
    wgmma_wait<kBlocks == 1 ? 1 : 0>();
  }
  wgmma_wait<0>();
  copy_wait<0>();

#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::uint32_t row =
        row0 + threadIdx.x / 32 * 16 + 8 * half + static_cast<std::uint32_t>(lane >> 2);
    if (row >= m.rows) continue;
    const float scale = m.x.scale[row];
    float* const y = m.y + static_cast<std::size_t>(row) * m.y_stride;
#pragma unroll
    for (int j = 0; j < kOutputs / 8; j += kGated ? 2 : 1) {
      const std::uint32_t output = output0 + (kGated ? 4 * j : 8 * j) + 2 * (lane & 3);
      if (output >= m.outputs) continue;  // pairs are whole: outputs are even
      float2 value = {sum[4 * j + 2 * half] * scale, sum[4 * j + 2 * half + 1] * scale};
      if (m.bias != nullptr) {
        value.x += m.bias[output];
        value.y += m.bias[output + 1];
      }
      if constexpr (kGated) {
        float2 up = {sum[4 * j + 4 + 2 * half] * scale, sum[4 * j + 5 + 2 * half] * scale};
        if (m.up_bias != nullptr) {
          up.x += m.up_bias[output];
          up.y += m.up_bias[output + 1];
        }
        value = {value.x / (1.0F + __expf(-value.x)) * up.x,
                 value.y / (1.0F + __expf(-value.y)) * up.y};
      }
      auto* const to = reinterpret_cast<float2*>(y + output);
      if (m.add) {
        const float2 old = *to;
        value.x += old.x;
        value.y += old.y;
      }
      *to = value;
    }
  }
#else
  __trap();
#endif
}

template <int kOutputs, int kStages, int kBlocks, bool kGated>
void launch(const HalfMatmul& m, cudaStream_t stream) {
  constexpr int kBytes = kStages * (kRows + kOutputs) * kRowBytes;
  constexpr int kTileOutputs = kGated ? kOutputs / 2 : kOutputs;
  const auto kernel = wgmma_kernel<kOutputs, kStages, kBlocks, kGated>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  const dim3 grid((m.rows + kRows - 1) / kRows, (m.outputs + kTileOutputs - 1) / kTileOutputs);
  kernel<<<grid, kThreads, kBytes, stream>>>(m);
}

template <bool kGated>
void launch_sized(const HalfMatmul& m, cudaStream_t stream) {
  // Short products: two blocks a multiprocessor, so that one computes while the other begins or
  // writes. Long ones: the wide tile, which reads shared memory least.
  constexpr std::uint32_t kLong = 1536;
  constexpr std::uint32_t kEnoughBlocks = 120;
  const std::uint32_t outputs = kGated ? 2 * m.outputs : m.outputs;
  const std::uint32_t wide_blocks = (m.rows + kRows - 1) / kRows * ((outputs + 255) / 256);
  if (m.cols >= kLong && wide_blocks >= kEnoughBlocks) {
    launch<256, 4, 1, kGated>(m, stream);
  } else {
    launch<128, 3, 2, kGated>(m, stream);
  }
}

}  // namespace

bool wgmma_supports(int major) { return major == 9; }

void launch_matmul_wgmma(const HalfMatmul& m, cudaStream_t stream) {
  launch_sized<false>(m, stream);
}

void launch_gated_wgmma(const HalfMatmul& m, cudaStream_t stream) { launch_sized<true>(m, stream); }

}  // namespace edgerunner::cuda
