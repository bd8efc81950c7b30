#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "backend/cuda/repack.h"
#include "backend/cuda/unpack.cuh"

namespace edgerunner::cuda {
namespace {

constexpr int kThreads = 256;

// Byte i of what a block's packed 6-bit scales and minima become (segment.h).
__device__ std::uint8_t unpacked_scale(const std::uint8_t* packed, std::uint32_t i) {
  const int j = static_cast<int>(4 * (i >> 3) + (i & 3));
  return static_cast<std::uint8_t>((i & 4) == 0 ? k_scale(packed, j) : k_minimum(packed, j));
}

// A thread an output byte. The copy is made once, at load, and runs at the speed of the link that
// feeds it.
__global__ void repack_kernel(Layout l, std::uint32_t cols, const std::uint8_t* from,
                              std::uint8_t* to, std::uint32_t row_bytes) {
  const std::uint32_t at = blockIdx.x * kThreads + threadIdx.x;
  if (at >= row_bytes) return;
  const std::size_t row = blockIdx.y;
  const std::uint32_t full = segment_bytes(l);
  const std::uint32_t segment = at / full;
  const std::uint32_t rest = cols - segment * l.segment_elements;
  const std::uint32_t n = (rest < l.segment_elements ? rest : l.segment_elements) / l.block_length;
  std::uint32_t inside = at - segment * full;
  std::uint8_t byte = 0;  // of the padding behind the last segment
  for (std::uint32_t f = 0; f < l.field_count; ++f) {
    const std::uint32_t size = l.fields[f].size;
    if (inside < n * size) {
      const std::size_t block =
          static_cast<std::size_t>(segment) * (l.segment_elements / l.block_length) + inside / size;
      const std::size_t source_row = row * (cols / l.block_length) * l.block_bytes;
      const std::uint8_t* const field =
          from + source_row + block * l.block_bytes + l.fields[f].offset;
      byte =
          l.fields[f].packed_scales ? unpacked_scale(field, inside % size) : field[inside % size];
      break;
    }
    inside -= n * size;
  }
  to[row * row_bytes + at] = byte;
}

__device__ std::uint32_t mix(std::uint64_t x) {  // SplitMix64's finaliser (Steele et al. 2014)
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return static_cast<std::uint32_t>((x ^ (x >> 31)) >> 16);
}

struct Scales {
  int count;           // of 16-bit floats in a block that are scales
  int offset[2];       // in the block
  float magnitude[2];  // of a scale such that the values have a spread of about 0.02
};

__global__ void random_kernel(ElementType type, Layout l, Scales scales, std::uint32_t cols,
                              std::uint8_t* to, std::uint32_t first_row, std::uint64_t seed) {
  const std::uint32_t blocks = cols / l.block_length;
  const std::uint32_t block = blockIdx.x * kThreads + threadIdx.x;
  if (block >= blocks) return;
  const std::size_t index = static_cast<std::size_t>(blockIdx.y) * blocks + block;
  std::uint8_t* const out = to + index * l.block_bytes;
  const std::uint64_t key =
      (seed << 40) + (static_cast<std::uint64_t>(first_row + blockIdx.y) * blocks + block) * 64;
  const auto uniform = [&](int i) {  // [-1, 1)
    return static_cast<float>(mix((key + i) * 0x9E3779B97F4A7C15ULL)) * 0x1p-31F - 1.0F;
  };
  if (l.block_length == 1) {
    const float x = 0.02F * 1.7320508F * uniform(0);
    if (type == ElementType::f32) *reinterpret_cast<float*>(out) = x;
    if (type == ElementType::f16) *reinterpret_cast<__half*>(out) = __float2half(x);
    if (type == ElementType::bf16) *reinterpret_cast<__nv_bfloat16*>(out) = __float2bfloat16(x);
    return;
  }
  for (std::uint32_t i = 0; i < l.block_bytes; ++i) {
    out[i] = static_cast<std::uint8_t>(mix((key + i / 4) * 0x9E3779B97F4A7C15ULL) >> (8 * (i & 3)));
  }
  if (type == ElementType::mxfp4) out[0] = 127 - 8;
  for (int s = 0; s < scales.count; ++s) {
    const __half value = __float2half(scales.magnitude[s] * (1.0F + 0.33F * uniform(60 + s)));
    const std::uint16_t bits = __half_as_ushort(value);
    out[scales.offset[s]] = static_cast<std::uint8_t>(bits & 0xFF);
    out[scales.offset[s] + 1] = static_cast<std::uint8_t>(bits >> 8);
  }
}

// Offsets as in tensor/blocks.h. A code uniform over n values has a spread of n / sqrt(12); with
// random sub-scales of mean m the block's scale is 0.02 / (m * spread), and offsets centre it.
Scales scales_of(ElementType type) {
  switch (type) {
    case ElementType::q4_0:
    case ElementType::iq4_nl:
      return {1, {0, 0}, {type == ElementType::q4_0 ? 4.3e-3F : 2.7e-4F, 0}};
    case ElementType::q4_1:
      return {2, {0, 2}, {4.3e-3F, -3.2e-2F}};
    case ElementType::q5_0:
      return {1, {0, 0}, {2.1e-3F, 0}};
    case ElementType::q5_1:
      return {2, {0, 2}, {2.1e-3F, -3.3e-2F}};
    case ElementType::q8_0:
      return {1, {0, 0}, {2.7e-4F, 0}};
    case ElementType::q2_k:
      return {2, {80, 82}, {2.4e-3F, 3.6e-3F}};
    case ElementType::q3_k:
      return {1, {108, 0}, {4.7e-4F, 0}};
    case ElementType::q4_k:
      return {2, {0, 2}, {1.1e-4F, 8.3e-4F}};
    case ElementType::q5_k:
      return {2, {0, 2}, {5.5e-5F, 8.5e-4F}};
    case ElementType::q6_k:
      return {1, {208, 0}, {1.5e-5F, 0}};
    case ElementType::iq4_xs:
      return {1, {0, 0}, {1.5e-5F, 0}};
    default:
      return {0, {0, 0}, {0, 0}};
  }
}

}  // namespace

void launch_repack(ElementType type, std::uint32_t cols, const std::uint8_t* from, std::uint8_t* to,
                   std::uint32_t rows, cudaStream_t stream) {
  const Layout l = layout(type);
  const std::uint32_t row_bytes = device_row_bytes(l, cols);
  const std::size_t from_bytes = static_cast<std::size_t>(cols / l.block_length) * l.block_bytes;
  constexpr std::uint32_t kMostRows = 32768;  // below the limit of a grid's second dimension
  for (std::uint32_t row = 0; row < rows; row += kMostRows) {
    const dim3 grid((row_bytes + kThreads - 1) / kThreads,
                    rows - row < kMostRows ? rows - row : kMostRows);
    repack_kernel<<<grid, kThreads, 0, stream>>>(l, cols, from + row * from_bytes,
                                                 to + static_cast<std::size_t>(row) * row_bytes,
                                                 row_bytes);
  }
}

void launch_random_blocks(ElementType type, std::uint32_t cols, std::uint8_t* to,
                          std::uint32_t first_row, std::uint32_t rows, std::uint64_t seed,
                          cudaStream_t stream) {
  const Layout l = layout(type);
  const std::size_t to_bytes = static_cast<std::size_t>(cols / l.block_length) * l.block_bytes;
  constexpr std::uint32_t kMostRows = 32768;
  for (std::uint32_t row = 0; row < rows; row += kMostRows) {
    const dim3 grid((cols / l.block_length + kThreads - 1) / kThreads,
                    rows - row < kMostRows ? rows - row : kMostRows);
    random_kernel<<<grid, kThreads, 0, stream>>>(type, l, scales_of(type), cols,
                                                 to + row * to_bytes, first_row + row, seed);
  }
}

}  // namespace edgerunner::cuda
