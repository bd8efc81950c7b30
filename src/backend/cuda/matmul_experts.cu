#include "backend/cuda/mixture_ops.h"
#include "backend/cuda/mma.cuh"
#include "backend/cuda/ptx.cuh"
#include "backend/cuda/reduce.cuh"
#include "backend/cuda/unpack_half.cuh"

// Products with experts' weights, f16 operands and f32 sums. Weights are unpacked to f16 on their
// way: how many rows an expert has is known on the device alone, and with few of them a matrix
// unpacked beforehand would be written and read for nothing. Runs on sm_80 and later.

namespace edgerunner::cuda {
namespace {

constexpr int kRowWarps = 8;

__device__ inline float dot_eight(const uint4& a, const uint4& b, float sum) {
  const auto* const x = reinterpret_cast<const __half2*>(&a);
  const auto* const y = reinterpret_cast<const __half2*>(&b);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 p = __half22float2(x[i]);
    const float2 q = __half22float2(y[i]);
    sum = fmaf(p.y, q.y, fmaf(p.x, q.x, sum));
  }
  return sum;
}

// Of one row: a warp makes an output. The weights are all that takes time, and many warps that each
// ask for their own keep the memory busy.
template <ElementType T>
__global__ void __launch_bounds__(kRowWarps * 32)
    one_row_kernel(const __grid_constant__ ExpertProduct p, HalfRows x) {
  const std::uint32_t out = blockIdx.x * kRowWarps + threadIdx.x / 32;
  if (out >= p.outputs || blockIdx.y >= *p.tile_count) return;
  const ExpertTile tile = p.tiles[blockIdx.y];
  constexpr int kStep = kUnpackStep<T>;
  const std::uint32_t lane = threadIdx.x & 31;
  const std::uint32_t cols = p.w.cols;
  const std::uint8_t* const weights =
      p.w.data + (static_cast<std::size_t>(tile.expert) * p.outputs + out) * p.w.row_bytes;
  const std::uint32_t source = p.sources == nullptr ? tile.first : p.sources[tile.first];
  const __half* const from = x.x + static_cast<std::size_t>(source) * cols;
  float sum = 0;
#pragma unroll 2
  for (std::uint32_t i = lane * kStep; i < cols; i += 32 * kStep) {
    uint4 values[kStep / 8];
    unpack_half<T>(weights, cols, i, values);
#pragma unroll
    for (int c = 0; c < kStep / 8; ++c) {
      sum = dot_eight(values[c], reinterpret_cast<const uint4*>(from + i)[c], sum);
    }
  }
  sum = warp_sum(sum);
  if (lane == 0) {
    p.y[static_cast<std::size_t>(tile.first) * p.outputs + out] = sum * x.scale[source];
  }
}

// Of several rows, on the tensor cores: a block makes a tile of rows by kOutputs; four warps make
// 16 outputs each.
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
  if (blockIdx.y >= *p.tile_count) return;
  const ExpertTile tile = p.tiles[blockIdx.y];
  const int lane = static_cast<int>(threadIdx.x & 31);
  const int warp = static_cast<int>(threadIdx.x / 32);
  const std::uint32_t cols = p.w.cols;
  const std::uint32_t output0 = blockIdx.x * kOutputs;
  const std::uint32_t base = shared_address(shared);
  const std::uint8_t* const weights =
      p.w.data + (static_cast<std::size_t>(tile.expert) * p.outputs + output0) * p.w.row_bytes;
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

  const auto fill = [&](std::uint32_t k0, std::uint32_t stage) {
    const std::uint32_t x_k = k0 + x_chunk * 8;
#pragma unroll
    for (int i = 0; i < kXRows; ++i) {
      const bool used = from[i] != nullptr && x_k < cols;
      copy_16(base + stage * kStageBytes + chunk_at(x_row + i * kRowStep, x_chunk),
              used ? from[i] + x_k : x.x, used);
    }
    copy_commit();
    constexpr int kStep = kUnpackStep<T>;
    constexpr int kPieces = kDepth / kStep;  // of a row
    std::uint8_t* const to = shared + stage * kStageBytes + kRows * kRowBytes;
#pragma unroll
    for (int i = 0; i < kOutputs * kPieces / kThreads; ++i) {
      const int index = i * kThreads + static_cast<int>(threadIdx.x);
      const int row = index / kPieces;
      const int at = index % kPieces * kStep;
      uint4 values[kStep / 8] = {};
      if (output0 + row < p.outputs && k0 + at < cols) {
        unpack_half<T>(weights + static_cast<std::size_t>(row) * p.w.row_bytes, cols, k0 + at,
                       values);
      }
#pragma unroll
      for (int c = 0; c < kStep / 8; ++c) {
        *reinterpret_cast<uint4*>(to + chunk_at(row, at / 8 + c)) = values[c];
      }
    }
  };

  constexpr int kTiles = kRows / 16;
  float sum[kTiles][2][4] = {};
  const std::uint32_t steps = (cols + kDepth - 1) / kDepth;
  fill(0, 0);
  for (std::uint32_t step = 0; step < steps; ++step) {
    copy_wait<0>();
    // All warps have filled this stage and are past the products of the other.
    __syncthreads();
    if (step + 1 < steps) fill((step + 1) * kDepth, (step + 1) & 1);
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
  }

#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t row = 16 * i + 8 * half + (lane >> 2);
      if (row >= tile.rows) continue;
      const float scale = x.scale[source(row)];
      float* const y = p.y + static_cast<std::size_t>(tile.first + row) * p.outputs;
#pragma unroll
      for (int j = 0; j < 2; ++j) {
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          const std::uint32_t output = output0 + 16 * warp + 8 * j + 2 * (lane & 3) + k;
          if (output < p.outputs) y[output] = sum[i][j][2 * half + k] * scale;
        }
      }
    }
  }
}

}  // namespace

void launch_experts_half(const ExpertProduct& product, const HalfRows& x, cudaStream_t stream) {
  visit_type(product.w.type, [&](auto tag) {
    constexpr ElementType kType = decltype(tag)::kType;
    const auto grid = [&](int outputs) {
      return dim3((product.outputs + outputs - 1) / outputs, product.most_tiles);
    };
    if (product.tile_rows == 1) {
      one_row_kernel<kType><<<grid(kRowWarps), kRowWarps * 32, 0, stream>>>(product, x);
    } else if (product.tile_rows == kFewExpertRows) {
      experts_kernel<kType, kFewExpertRows><<<grid(kOutputs), kThreads, 0, stream>>>(product, x);
    } else {
      experts_kernel<kType, kManyExpertRows><<<grid(kOutputs), kThreads, 0, stream>>>(product, x);
    }
  });
}

}  // namespace edgerunner::cuda
