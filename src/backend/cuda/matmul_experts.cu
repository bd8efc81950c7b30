#include "backend/cuda/chain.cuh"
#include "backend/cuda/mixture_ops.h"
#include "backend/cuda/mma.cuh"
#include "backend/cuda/ptx.cuh"
#include "backend/cuda/unpack_half.cuh"

// Products with experts' weights, f16 operands and f32 sums. Weights are unpacked to f16 on their
// way: how many rows an expert has is known on the device alone, and with few of them a matrix
// unpacked beforehand would be written and read for nothing. Runs on sm_80 and later.

namespace edgerunner::cuda {
namespace {

// A block makes a tile of rows by kOutputs; four warps make 16 outputs each.
constexpr int kThreads = 128;
constexpr int kOutputs = 64;
constexpr int kDepth = 64;  // a row of a tile is 128 bytes, all 32 banks
constexpr int kChunks = kDepth / 8;
constexpr int kRowBytes = kDepth * 2;

__device__ inline std::uint32_t chunk_at(int row, int chunk) {
  return static_cast<std::uint32_t>(row * kRowBytes + ((chunk ^ (row & 7)) << 4));
}

template <ElementType T, int kRows>
__global__ void __launch_bounds__(kThreads)
    experts_kernel(const __grid_constant__ ExpertProduct p, HalfRows x) {
  constexpr int kStageBytes = (kRows + kOutputs) * kRowBytes;
  __shared__ __align__(128) std::uint8_t shared[2 * kStageBytes];
  wait_for_previous();
  let_next_begin();
  if (blockIdx.y >= *p.tile_count) return;
  const ExpertTile tile = p.tiles[blockIdx.y];
  const int lane = static_cast<int>(threadIdx.x & 31);
  const int warp = static_cast<int>(threadIdx.x / 32);
  const DeviceMatrix& w = blockIdx.z == 0 ? p.w : p.also_w;
  float* const y = blockIdx.z == 0 ? p.y : p.also_y;
  const std::uint32_t cols = w.cols;
  const std::uint32_t output0 = blockIdx.x * kOutputs;
  const std::uint32_t base = shared_address(shared);
  const std::uint8_t* const weights =
      w.data + (static_cast<std::size_t>(tile.expert) * p.outputs + output0) * w.row_bytes;
  const auto source = [&](std::uint32_t row) {
    return p.sources == nullptr ? tile.first + row : p.sources[tile.first + row];
  };

  // This thread's rows of x: the same 16-byte column of every 16th.
  constexpr int kXRows = kRows * kChunks / kThreads;
  constexpr int kRowStep = kThreads / kChunks;
  const int x_row = static_cast<int>(threadIdx.x) / kChunks;
  const int x_chunk = static_cast<int>(threadIdx.x) % kChunks;
  const __half* from[kXRows];
#pragma unroll
  for (int i = 0; i < kXRows; ++i) {
    const std::uint32_t row = x_row + i * kRowStep;
    from[i] = row < tile.rows ? x.x + static_cast<std::size_t>(source(row)) * cols : nullptr;
  }

  const auto fetch_x = [&](std::uint32_t k0, std::uint32_t stage) {
    const std::uint32_t x_k = k0 + x_chunk * 8;
#pragma unroll
    for (int i = 0; i < kXRows; ++i) {
      const bool used = from[i] != nullptr && x_k < cols;
      copy_16(base + stage * kStageBytes + chunk_at(x_row + i * kRowStep, x_chunk),
              used ? from[i] + x_k : x.x, used);
    }
    copy_commit();
  };
  // Weights are asked for before a step's products and put into shared memory after them. Nothing
  // is asked for under a condition, so that nobody waits before the products.
  constexpr int kStep = kUnpackStep<T>;
  constexpr int kPieces = kDepth / kStep;  // of a row
  constexpr int kMine = kOutputs * kPieces / kThreads;
  uint4 values[kMine][kStep / 8];
  const auto fetch_weights = [&](std::uint32_t k0) {
#pragma unroll
    for (int i = 0; i < kMine; ++i) {
      const int index = i * kThreads + static_cast<int>(threadIdx.x);
      const int row = index / kPieces;
      const int at = index % kPieces * kStep;
      const std::size_t used = output0 + row < p.outputs ? row : 0;
      unpack_half<T>(weights + used * w.row_bytes, cols, k0 + at < cols ? k0 + at : 0, values[i]);
    }
  };
  const auto place_weights = [&](std::uint32_t k0, std::uint32_t stage) {
    std::uint8_t* const to = shared + stage * kStageBytes + kRows * kRowBytes;
#pragma unroll
    for (int i = 0; i < kMine; ++i) {
      const int index = i * kThreads + static_cast<int>(threadIdx.x);
      const int row = index / kPieces;
      const int at = index % kPieces * kStep;
      const bool used = output0 + row < p.outputs && k0 + at < cols;
#pragma unroll
      for (int c = 0; c < kStep / 8; ++c) {
        *reinterpret_cast<uint4*>(to + chunk_at(row, at / 8 + c)) =
            used ? values[i][c] : uint4{0, 0, 0, 0};
      }
    }
  };

  constexpr int kTiles = kRows / 16;
  float sum[kTiles][2][4] = {};
  const std::uint32_t steps = (cols + kDepth - 1) / kDepth;
  fetch_weights(0);
  fetch_x(0, 0);
  place_weights(0, 0);
  for (std::uint32_t step = 0; step < steps; ++step) {
    copy_wait<0>();
    // All warps have filled this stage and are past the products of the other.
    __syncthreads();
    if (step + 1 < steps) {
      fetch_weights((step + 1) * kDepth);
      fetch_x((step + 1) * kDepth, (step + 1) & 1);
    }
    const std::uint32_t x_tile = base + (step & 1) * kStageBytes;
    const std::uint32_t w_tile = x_tile + kRows * kRowBytes;
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k) {
      std::uint32_t b[4];
      const int row = 16 * warp + (lane & 7) + ((lane >> 4) << 3);
      load_matrices(b, w_tile + chunk_at(row, 2 * k + ((lane >> 3) & 1)));
#pragma unroll
      for (int i = 0; i < kTiles; ++i) {
        std::uint32_t a[4];
        load_matrices(a, x_tile + chunk_at(16 * i + (lane & 15), 2 * k + (lane >> 4)));
        mma_f16(sum[i][0], a[0], a[1], a[2], a[3], b[0], b[1]);
        mma_f16(sum[i][1], a[0], a[1], a[2], a[3], b[2], b[3]);
      }
    }
    if (step + 1 < steps) place_weights((step + 1) * kDepth, (step + 1) & 1);
  }

#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t row = 16 * i + 8 * half + (lane >> 2);
      if (row >= tile.rows) continue;
      const float scale = x.scale[source(row)];
      float* const to = y + static_cast<std::size_t>(tile.first + row) * p.outputs;
#pragma unroll
      for (int j = 0; j < 2; ++j) {
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          const std::uint32_t output = output0 + 16 * warp + 8 * j + 2 * (lane & 3) + k;
          if (output < p.outputs) to[output] = sum[i][j][2 * half + k] * scale;
        }
      }
    }
  }
}

}  // namespace

void launch_experts_half(const ExpertProduct& product, const HalfRows& x, cudaStream_t stream) {
  visit_type(product.w.type, [&](auto tag) {
    constexpr ElementType kType = decltype(tag)::kType;
    const dim3 grid((product.outputs + kOutputs - 1) / kOutputs, product.most_tiles,
                    product.also_y == nullptr ? 1 : 2);
    const auto kernel = product.tile_rows == kFewExpertRows
                            ? experts_kernel<kType, kFewExpertRows>
                            : experts_kernel<kType, kManyExpertRows>;
    launch_chained(kernel, grid, kThreads, 0, stream, product, x);
  });
}

}  // namespace edgerunner::cuda
