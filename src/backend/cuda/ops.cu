#include <type_traits>

#include "backend/cuda/activate.cuh"
#include "backend/cuda/cache_values.cuh"
#include "backend/cuda/chain.cuh"
#include "backend/cuda/norm_row.cuh"
#include "backend/cuda/ops.h"
#include "backend/cuda/reduce.cuh"
#include "backend/cuda/rotate_head.cuh"
#include "backend/cuda/unpack.cuh"
#include "backend/executor.h"

namespace edgerunner::cuda {
namespace {

constexpr int kThreads = 256;

template <ElementType T>
__global__ void embed_kernel(DeviceMatrix table, DeviceBatch batch, float scale, float* x) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= table.cols) return;
  const std::size_t token = static_cast<std::size_t>(batch.tokens[blockIdx.y]);
  x[static_cast<std::size_t>(blockIdx.y) * table.cols + i] =
      scale * row_value<T>(table.data + token * table.row_bytes, static_cast<int>(table.cols),
                           static_cast<int>(i));
}

__global__ void norm_kernel(Norm norm, NormRows io) {
  __shared__ float scratch[kThreads / 32];
  const std::size_t source = io.chosen == nullptr ? blockIdx.x : io.chosen[blockIdx.x];
  const float* const in = io.x + source * io.x_stride;
  float* const out = io.y + static_cast<std::size_t>(blockIdx.x) * io.y_stride;
  const RowNorm by = row_norm<kThreads>(norm, in, io.dim, scratch);
  for (std::uint32_t i = threadIdx.x; i < io.dim; i += kThreads) out[i] = by.at(norm, in[i], i);
}

__global__ void add_branch_kernel(const float* branch, Norm norm, float scale, std::uint32_t dim,
                                  float* x) {
  __shared__ float scratch[kThreads / 32];
  const std::size_t row = static_cast<std::size_t>(blockIdx.x) * dim;
  const RowNorm by = row_norm<kThreads>(norm, branch + row, dim, scratch);
  for (std::uint32_t i = threadIdx.x; i < dim; i += kThreads) {
    x[row + i] += scale * by.at(norm, branch[row + i], i);
  }
}

__global__ void rope_table_kernel(DeviceBatch batch, const double* inverse_frequencies,
                                  std::uint32_t pairs, double magnitude, float2* table) {
  const std::uint32_t i = threadIdx.x;
  if (i >= pairs) return;
  double sine = 0;
  double cosine = 0;
  sincos(batch.positions[blockIdx.x] * inverse_frequencies[i], &sine, &cosine);
  table[blockIdx.x * pairs + i] = {static_cast<float>(cosine * magnitude),
                                   static_cast<float>(sine * magnitude)};
}

template <typename T>
__global__ void __launch_bounds__(kMaxHeadDim)
    rotate_kernel(AttentionShape shape, RotateWeights weights, DeviceBatch batch, float* qkv,
                  CacheValues<T> keys, CacheValues<T> values) {
  let_next_begin();
  wait_for_previous();
  const std::uint32_t row = blockIdx.y;
  const RowHead head(shape, weights, batch, row, blockIdx.x);
  float* const data =
      qkv + static_cast<std::size_t>(row) * shape.row() + blockIdx.x * shape.head_dim + threadIdx.x;
  head.store(shape, weights.epsilon, threadIdx.x < shape.head_dim ? *data : 0.0F, data, keys,
             values);
}

__global__ void activate_kernel(Activation activation, float* gate, const float* up,
                                std::uint64_t count) {
  const std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const float x = gate[i];
  const float y = activation == Activation::silu ? x / (1.0F + expf(-x)) : gelu_tanh(x);
  gate[i] = up == nullptr ? y : y * up[i];
}

__global__ void cap_logits_kernel(float* logits, std::uint64_t count, float scale, float cap) {
  const std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) logits[i] = capped(logits[i] * scale, cap);
}

template <typename T>
__global__ void copy_page_kernel(AttentionShape shape, CacheValues<T> keys, CacheValues<T> values,
                                 std::uint32_t from, std::uint32_t to, std::uint32_t tokens) {
  const std::size_t kv = shape.kv_heads;
  const std::size_t source = (from * kv + blockIdx.x) * kPageTokens;
  const std::size_t target = (to * kv + blockIdx.x) * kPageTokens;
  for (const CacheValues<T>& copied : {keys, values}) {
    T* const codes = copied.codes;
    for (std::uint32_t i = threadIdx.x; i < tokens * shape.head_dim; i += kThreads) {
      codes[target * shape.head_dim + i] = codes[source * shape.head_dim + i];
    }
    if constexpr (CacheValues<T>::kScaled) {
      for (std::uint32_t i = threadIdx.x; i < tokens; i += kThreads) {
        copied.scales[target + i] = copied.scales[source + i];
      }
    }
  }
}

}  // namespace

void launch_embed(const DeviceMatrix& table, const DeviceBatch& batch, float scale, float* x,
                  cudaStream_t stream) {
  const dim3 grid((table.cols + kThreads - 1) / kThreads, batch.rows);
  visit_type(table.type, [&](auto tag) {
    embed_kernel<decltype(tag)::kType><<<grid, kThreads, 0, stream>>>(table, batch, scale, x);
  });
}

void launch_norm(const Norm& norm, const NormRows& io, cudaStream_t stream) {
  norm_kernel<<<io.rows, kThreads, 0, stream>>>(norm, io);
}

void launch_add_branch(const float* branch, const Norm& norm, float scale, std::uint32_t rows,
                       std::uint32_t dim, float* x, cudaStream_t stream) {
  add_branch_kernel<<<rows, kThreads, 0, stream>>>(branch, norm, scale, dim, x);
}

void launch_rope_table(const DeviceBatch& batch, const double* inverse_frequencies,
                       std::uint32_t pairs, double magnitude, float2* table, cudaStream_t stream) {
  if (pairs == 0) return;
  rope_table_kernel<<<batch.rows, kMaxHeadDim / 2, 0, stream>>>(batch, inverse_frequencies, pairs,
                                                                magnitude, table);
}

void launch_rotate_and_cache(const AttentionShape& shape, const RotateWeights& weights,
                             const DeviceBatch& batch, float* qkv, const DeviceCache& cache,
                             cudaStream_t stream) {
  const dim3 grid(shape.heads + 2 * shape.kv_heads, batch.rows);
  visit_cache(cache, [&](auto keys, auto values) {
    using Kind = std::remove_pointer_t<decltype(keys.codes)>;
    launch_chained(rotate_kernel<Kind>, grid, head_threads(shape), 0, stream, shape, weights, batch,
                   qkv, keys, values);
  });
}

void launch_activate(Activation activation, float* gate, const float* up, std::uint64_t count,
                     cudaStream_t stream) {
  activate_kernel<<<static_cast<unsigned>((count + kThreads - 1) / kThreads), kThreads, 0,
                    stream>>>(activation, gate, up, count);
}

void launch_cap_logits(float* logits, std::uint64_t count, float scale, float cap,
                       cudaStream_t stream) {
  cap_logits_kernel<<<static_cast<unsigned>((count + kThreads - 1) / kThreads), kThreads, 0,
                      stream>>>(logits, count, scale, cap);
}

void launch_copy_page(const AttentionShape& shape, const DeviceCache& cache, std::uint32_t from,
                      std::uint32_t to, std::uint32_t tokens, cudaStream_t stream) {
  visit_cache(cache, [&](auto keys, auto values) {
    copy_page_kernel<<<shape.kv_heads, kThreads, 0, stream>>>(shape, keys, values, from, to,
                                                              tokens);
  });
}

}  // namespace edgerunner::cuda
