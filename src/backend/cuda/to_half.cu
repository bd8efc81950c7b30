#include "backend/cuda/prefill_ops.h"
#include "backend/cuda/reduce.cuh"
#include "backend/cuda/unpack.cuh"

namespace edgerunner::cuda {
namespace {

constexpr int kThreads = 256;

__device__ float block_max(float x, float* scratch) {
  x = warp_max(x);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = x;
  __syncthreads();
  float peak = 0;
  for (int i = 0; i < kThreads / 32; ++i) peak = fmaxf(peak, scratch[i]);
  return peak;
}

// A block a row. `at(i)` is the row's value at i; it is asked twice.
template <typename At>
__device__ void write_row(const HalfRows& to, std::uint32_t cols, float* scratch, const At& at) {
  float peak = 0;
  for (std::uint32_t i = threadIdx.x; i < cols; i += kThreads) peak = fmaxf(peak, fabsf(at(i)));
  peak = block_max(peak, scratch);
  // 2^(10 - e) for a peak in [2^e, 2^(e+1)).
  const int exponent = peak > 0 ? ilogbf(peak) : 10;
  const float by = ldexpf(1.0F, 10 - exponent);
  __half* const out = to.x + static_cast<std::size_t>(blockIdx.x) * cols;
  for (std::uint32_t i = threadIdx.x; i < cols; i += kThreads) out[i] = __float2half_rn(at(i) * by);
  if (threadIdx.x == 0) to.scale[blockIdx.x] = ldexpf(1.0F, exponent - 10);
}

__global__ void norm_kernel(const float* x, const float* weight, float epsilon, std::uint32_t dim,
                            HalfRows to) {
  __shared__ float scratch[kThreads / 32];
  const float* const in = x + static_cast<std::size_t>(blockIdx.x) * dim;
  float squares = 0;
  for (std::uint32_t i = threadIdx.x; i < dim; i += kThreads) squares = fmaf(in[i], in[i], squares);
  squares = block_sum<kThreads>(squares, scratch);
  const float scale = 1.0F / sqrtf(squares / static_cast<float>(dim) + epsilon);
  write_row(to, dim, scratch, [&](std::uint32_t i) { return in[i] * scale * weight[i]; });
}

__global__ void plain_kernel(const float* x, std::uint32_t cols, HalfRows to) {
  __shared__ float scratch[kThreads / 32];
  const float* const in = x + static_cast<std::size_t>(blockIdx.x) * cols;
  write_row(to, cols, scratch, [&](std::uint32_t i) { return in[i]; });
}

__global__ void silu_kernel(const float* gate, const float* up, std::uint32_t cols, HalfRows to) {
  __shared__ float scratch[kThreads / 32];
  const std::size_t row = static_cast<std::size_t>(blockIdx.x) * cols;
  write_row(to, cols, scratch, [&](std::uint32_t i) {
    const float x = gate[row + i];
    return x / (1.0F + __expf(-x)) * up[row + i];
  });
}

// Eight neighbouring elements a thread.
template <ElementType T>
__global__ void dequantize_kernel(DeviceMatrix w, std::uint32_t first, __half* to) {
  const std::uint32_t i = (blockIdx.x * kThreads + threadIdx.x) * 8;
  if (i >= w.cols) return;
  constexpr Layout kLayout = layout(T);
  const std::uint8_t* const row =
      w.data + static_cast<std::size_t>(first + blockIdx.y) * w.row_bytes;
  const std::uint32_t segment = i / kLayout.segment_elements;
  const std::uint32_t rest = w.cols - segment * kLayout.segment_elements;
  const int n = static_cast<int>(
      (rest < kLayout.segment_elements ? rest : kLayout.segment_elements) / kLayout.block_length);
  const std::uint8_t* const seg = row + static_cast<std::size_t>(segment) * segment_bytes(kLayout);
  const int at = static_cast<int>(i - segment * kLayout.segment_elements);
  __half2 pairs[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    pairs[k] = __floats2half2_rn(value<T>(seg, n, at + 2 * k), value<T>(seg, n, at + 2 * k + 1));
  }
  *reinterpret_cast<uint4*>(to + static_cast<std::size_t>(blockIdx.y) * w.cols + i) =
      *reinterpret_cast<const uint4*>(pairs);
}

// Sixteen neighbouring elements a thread, for the types that models are shipped in: codes are read
// 4 to 16 bytes at a time.
template <ElementType T>
constexpr bool kHasFastDequantize =
    T == ElementType::q8_0 || T == ElementType::q4_k || T == ElementType::q6_k ||
    T == ElementType::q4_0 || T == ElementType::q4_1;

// scale * code + offset for the four codes in the bytes of `codes`.
__device__ inline void unpack_four(std::uint32_t codes, float scale, float offset, __half2* out) {
  const auto code = [&](int i) {
    return static_cast<float>(static_cast<std::int8_t>(codes >> (8 * i)));
  };
  out[0] = __floats2half2_rn(fmaf(scale, code(0), offset), fmaf(scale, code(1), offset));
  out[1] = __floats2half2_rn(fmaf(scale, code(2), offset), fmaf(scale, code(3), offset));
}

template <ElementType T>
__global__ void dequantize_fast_kernel(DeviceMatrix w, std::uint32_t first, __half* to) {
  const std::uint32_t i = (blockIdx.x * kThreads + threadIdx.x) * 16;
  if (i >= w.cols) return;
  constexpr Layout kLayout = layout(T);
  const std::uint32_t segment = i / kLayout.segment_elements;
  const std::uint32_t rest = w.cols - segment * kLayout.segment_elements;
  const std::uint32_t n =
      (rest < kLayout.segment_elements ? rest : kLayout.segment_elements) / kLayout.block_length;
  const std::uint8_t* const seg = w.data +
                                  static_cast<std::size_t>(first + blockIdx.y) * w.row_bytes +
                                  static_cast<std::size_t>(segment) * segment_bytes(kLayout);
  const std::uint32_t at = i - segment * kLayout.segment_elements;
  uint4 codes;  // of the sixteen, a byte each
  float scale;
  float offset = 0;
  if constexpr (T == ElementType::q8_0) {
    codes = *reinterpret_cast<const uint4*>(seg + at);
    scale = half_at(seg + 32 * n + 2 * (at / 32));
  } else if constexpr (T == ElementType::q4_0 || T == ElementType::q4_1) {
    const std::uint32_t b = at / 32;
    const int shift = at & 16 ? 4 : 0;
    const uint4 q = *reinterpret_cast<const uint4*>(seg + 16 * b);
    codes = {(q.x >> shift) & 0x0F0F0F0FU, (q.y >> shift) & 0x0F0F0F0FU,
             (q.z >> shift) & 0x0F0F0F0FU, (q.w >> shift) & 0x0F0F0F0FU};
    if constexpr (T == ElementType::q4_0) {
      scale = half_at(seg + 16 * n + 2 * b);
      offset = -8.0F * scale;
    } else {
      scale = half_at(seg + 16 * n + 4 * b);
      offset = half_at(seg + 16 * n + 4 * b + 2);
    }
  } else if constexpr (T == ElementType::q4_k) {
    const std::uint32_t b = at / 256;
    const int j = static_cast<int>(at / 32 & 7);
    const int shift = 4 * (j & 1);
    const uint4 q = *reinterpret_cast<const uint4*>(seg + 128 * b + 32 * (j >> 1) + (at & 16));
    codes = {(q.x >> shift) & 0x0F0F0F0FU, (q.y >> shift) & 0x0F0F0F0FU,
             (q.z >> shift) & 0x0F0F0F0FU, (q.w >> shift) & 0x0F0F0F0FU};
    const std::uint8_t* const scales = seg + 128 * n + 16 * b;
    const std::uint8_t* const dm = seg + 144 * n + 4 * b;
    scale = half_at(dm) * static_cast<float>(scales[k_scale_at(j)]);
    offset = -half_at(dm + 2) * static_cast<float>(scales[k_minimum_at(j)]);
  } else {
    static_assert(T == ElementType::q6_k);
    const std::uint32_t b = at / 256;
    const std::uint32_t half = at / 128 & 1;
    const std::uint32_t k = at & 127;
    const int low_shift = k >= 64 ? 4 : 0;
    const int high_shift = static_cast<int>(2 * (k / 32));
    const uint4 ql = *reinterpret_cast<const uint4*>(seg + 128 * b + 64 * half + (k & 63));
    const uint4 qh = *reinterpret_cast<const uint4*>(seg + 128 * n + 64 * b + 32 * half + (k & 31));
    const auto join = [&](std::uint32_t low, std::uint32_t high) {
      return ((low >> low_shift) & 0x0F0F0F0FU) | (((high >> high_shift) & 0x03030303U) << 4);
    };
    codes = {join(ql.x, qh.x), join(ql.y, qh.y), join(ql.z, qh.z), join(ql.w, qh.w)};
    scale = half_at(seg + 208 * n + 2 * b) *
            static_cast<float>(static_cast<std::int8_t>(seg[192 * n + 16 * b + (at / 16 & 15)]));
    offset = -32.0F * scale;
  }
  __half2 pairs[8];
  unpack_four(codes.x, scale, offset, pairs);
  unpack_four(codes.y, scale, offset, pairs + 2);
  unpack_four(codes.z, scale, offset, pairs + 4);
  unpack_four(codes.w, scale, offset, pairs + 6);
  auto* const out =
      reinterpret_cast<uint4*>(to + static_cast<std::size_t>(blockIdx.y) * w.cols + i);
  out[0] = *reinterpret_cast<const uint4*>(pairs);
  out[1] = *reinterpret_cast<const uint4*>(pairs + 4);
}

}  // namespace

void launch_norm_to_half(const float* x, const float* weight, float epsilon, std::uint32_t rows,
                         std::uint32_t dim, const HalfRows& to, cudaStream_t stream) {
  norm_kernel<<<rows, kThreads, 0, stream>>>(x, weight, epsilon, dim, to);
}

void launch_to_half(const float* x, std::uint32_t rows, std::uint32_t cols, const HalfRows& to,
                    cudaStream_t stream) {
  plain_kernel<<<rows, kThreads, 0, stream>>>(x, cols, to);
}

void launch_silu_to_half(const float* gate, const float* up, std::uint32_t rows, std::uint32_t cols,
                         const HalfRows& to, cudaStream_t stream) {
  silu_kernel<<<rows, kThreads, 0, stream>>>(gate, up, cols, to);
}

void launch_dequantize_to_half(const DeviceMatrix& w, std::uint32_t first, std::uint32_t count,
                               __half* to, cudaStream_t stream) {
  constexpr std::uint32_t kMostRows = 32768;  // below the limit of a grid's second dimension
  for (std::uint32_t row = 0; row < count; row += kMostRows) {
    const std::uint32_t rows = count - row < kMostRows ? count - row : kMostRows;
    __half* const out = to + static_cast<std::size_t>(row) * w.cols;
    visit_type(w.type, [&](auto tag) {
      constexpr ElementType kType = decltype(tag)::kType;
      if constexpr (kHasFastDequantize<kType>) {
        const dim3 grid((w.cols / 16 + kThreads - 1) / kThreads, rows);
        dequantize_fast_kernel<kType><<<grid, kThreads, 0, stream>>>(w, first + row, out);
      } else {
        const dim3 grid((w.cols / 8 + kThreads - 1) / kThreads, rows);
        dequantize_kernel<kType><<<grid, kThreads, 0, stream>>>(w, first + row, out);
      }
    });
  }
}

}  // namespace edgerunner::cuda
