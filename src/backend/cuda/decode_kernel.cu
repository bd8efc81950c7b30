#include "backend/cuda/decode_attention.cuh"
#include "backend/cuda/decode_plan.h"
#include "backend/cuda/decode_stream.cuh"
#include "backend/cuda/dot_q8.cuh"
#include "backend/cuda/reduce.cuh"
#include "backend/cuda/unpack.cuh"

// One token in one persistent kernel: a block a multiprocessor, five phases a layer, a barrier over
// the grid after each. docs/performance-cuda.md has the arithmetic.

namespace edgerunner::cuda {
namespace {

// Where things lie in a block's shared memory: offsets in bytes. The ring comes last.
struct SharedMap {
  std::uint32_t scales, sums;      // codes at 0
  std::uint32_t new_key, scratch;  // attention's, over the same bytes; queries at 0
  std::uint32_t turns, table, matrices, layers, reduce, ring;
};

__host__ __device__ inline std::uint32_t align(std::uint32_t bytes) {
  return (bytes + 127) & ~127U;
}

__host__ __device__ inline SharedMap shared_map(const DecodeParameters& p) {
  SharedMap m{};
  m.scales = align(p.widest);
  m.sums = m.scales + align(p.widest / 32 * 4);
  const std::uint32_t activations = m.sums + align(p.widest / 16 * 4);
  m.new_key = align(p.widest_group * 4);
  m.scratch = m.new_key + align(p.widest_head * 4);
  const std::uint32_t attention =
      m.scratch + align(kDecodeWarps * kHeadsPerPass * (p.widest_head + 2) * 4);
  m.turns = activations > attention ? activations : attention;
  m.table = m.turns + align(p.pairs * 8);
  m.matrices = m.table + align(p.table_pages * 4);
  m.layers = m.matrices + align((p.layer_count * kLayerMatrices + 1) *
                                static_cast<std::uint32_t>(sizeof(StreamMatrix)));
  m.reduce = m.layers + align(2 * static_cast<std::uint32_t>(sizeof(DecodeLayer)));
  m.ring = m.reduce + 512;
  return m;
}

__device__ __noinline__ float matrix_value(const DeviceMatrix& m, std::uint32_t row, int i) {
  const std::uint8_t* const data = m.data + static_cast<std::size_t>(row) * m.row_bytes;
  const int cols = static_cast<int>(m.cols);
  switch (m.type) {
#define EDGERUNNER_CASE(T) \
  case ElementType::T:     \
    return row_value<ElementType::T>(data, cols, i);
    EDGERUNNER_CASE(f32)
    EDGERUNNER_CASE(f16)
    EDGERUNNER_CASE(bf16)
    EDGERUNNER_CASE(q4_0)
    EDGERUNNER_CASE(q4_1)
    EDGERUNNER_CASE(q5_0)
    EDGERUNNER_CASE(q5_1)
    EDGERUNNER_CASE(q8_0)
    EDGERUNNER_CASE(q2_k)
    EDGERUNNER_CASE(q3_k)
    EDGERUNNER_CASE(q4_k)
    EDGERUNNER_CASE(q5_k)
    EDGERUNNER_CASE(q6_k)
    EDGERUNNER_CASE(iq4_nl)
    EDGERUNNER_CASE(iq4_xs)
    EDGERUNNER_CASE(mxfp4)
#undef EDGERUNNER_CASE
    default:
      return 0;
  }
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// Four neighbouring elements of a vector in a lane's registers, quantised together with those of
// the seven lanes beside it. Lanes past the end hold zeros and store nothing.
__device__ inline void quantize_group(float4 v, std::uint32_t i, bool inside, std::int8_t* codes,
                                      float* scales, float* sums) {
  float peak = fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
  for (int distance = 1; distance < 8; distance *= 2) {
    peak = fmaxf(peak, __shfl_xor_sync(0xFFFFFFFFU, peak, distance));
  }
  const float scale = peak * (1.0F / 127.0F);
  const float inverse = peak > 0 ? 127.0F / peak : 0.0F;
  const int a = __float2int_rn(v.x * inverse);
  const int b = __float2int_rn(v.y * inverse);
  const int c = __float2int_rn(v.z * inverse);
  const int d = __float2int_rn(v.w * inverse);
  int sum = a + b + c + d;
  sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 1);
  sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 2);
  if (!inside) return;
  *reinterpret_cast<std::uint32_t*>(codes + i) =
      (a & 0xFF) | (b & 0xFF) << 8 | (c & 0xFF) << 16 | static_cast<std::uint32_t>(d & 0xFF) << 24;
  if (i % 16 == 0) sums[i / 16] = scale * static_cast<float>(sum);
  if (i % 32 == 0) scales[i / 32] = scale;
}

constexpr std::uint32_t kStepFloats = kDecodeThreads * 4;  // of a vector, read by a block at once
constexpr int kNormSteps = 4;                              // up to 8192 elements

struct Best {
  float logit = -INFINITY;
  std::uint32_t index = 0xFFFFFFFFU;
  __device__ void offer(float other, std::uint32_t other_index) {
    if (other > logit || (other == logit && other_index < index)) {
      logit = other;
      index = other_index;
    }
  }
  __device__ void merge_warp() {
    for (int distance = 16; distance > 0; distance /= 2) {
      const float other = __shfl_xor_sync(0xFFFFFFFFU, logit, distance);
      const std::uint32_t other_index = __shfl_xor_sync(0xFFFFFFFFU, index, distance);
      offer(other, other_index);
    }
  }
};

template <typename T>
__global__ void __launch_bounds__(kDecodeThreads, 1)
    decode_kernel(const __grid_constant__ DecodeParameters p, const __grid_constant__ DecodeIo io) {
  extern __shared__ __align__(128) std::uint8_t shared[];
  const SharedMap map = shared_map(p);
  auto* const codes = reinterpret_cast<std::int8_t*>(shared);
  auto* const scales = reinterpret_cast<float*>(shared + map.scales);
  auto* const sums = reinterpret_cast<float*>(shared + map.sums);
  auto* const turns = reinterpret_cast<float2*>(shared + map.turns);
  auto* const table = reinterpret_cast<PageId*>(shared + map.table);
  auto* const matrices = reinterpret_cast<StreamMatrix*>(shared + map.matrices);
  auto* const layers = reinterpret_cast<DecodeLayer*>(shared + map.layers);
  auto* const reduce = reinterpret_cast<float*>(shared + map.reduce);
  auto* const full =
      reinterpret_cast<std::uint64_t*>(shared + map.ring + kDecodeWarps * p.stages * p.stage_bytes);
  const AttentionShared attention{reinterpret_cast<float*>(shared),
                                  reinterpret_cast<float*>(shared + map.new_key),
                                  reinterpret_cast<float*>(shared + map.scratch),
                                  turns,
                                  table,
                                  reinterpret_cast<int*>(reduce + 64)};

  const std::uint32_t warp = threadIdx.x / 32;
  const std::uint32_t lane = threadIdx.x & 31;
  const std::uint32_t first_row = warp * gridDim.x + blockIdx.x;
  const std::uint32_t row_step = gridDim.x * kDecodeWarps;

  // What the whole token needs.
  const auto copy_words = [&](void* to, const void* from, std::uint32_t bytes) {
    for (std::uint32_t i = threadIdx.x; i < bytes / 4; i += kDecodeThreads) {
      static_cast<std::uint32_t*>(to)[i] = static_cast<const std::uint32_t*>(from)[i];
    }
  };
  copy_words(matrices, p.matrices, (p.layer_count * kLayerMatrices + 1) * sizeof(StreamMatrix));
  copy_words(layers, p.layers, sizeof(DecodeLayer));
  if (threadIdx.x < kDecodeWarps * p.stages) mbarrier_init(full + threadIdx.x, 1);
  mbarrier_init_fence();
  const unsigned start = *static_cast<volatile unsigned*>(p.counters + 1);
  const TokenId token = *io.token;
  const std::uint32_t position = *io.position;
  __syncthreads();

  WeightStream stream(p, matrices, io.logits != nullptr,
                      shared + map.ring + warp * p.stages * p.stage_bytes, full + warp * p.stages,
                      first_row, row_step, lane);
  GridBarrier barrier(p.counters, start);
  if (threadIdx.x < p.pairs) {
    double sine = 0;
    double cosine = 0;
    sincos(position * p.inverse_frequencies[threadIdx.x], &sine, &cosine);
    turns[threadIdx.x] = {static_cast<float>(cosine * p.rope_magnitude),
                          static_cast<float>(sine * p.rope_magnitude)};
  }
  for (std::uint32_t i = threadIdx.x; i < p.table_pages && i <= position / kPageTokens;
       i += kDecodeThreads) {
    table[i] = io.pages[i];
  }

  // Reads x (the embedding in the first phase), normalises it with `weight` and quantises it.
  // Waits for the barrier itself, once the norm's weights are on their way.
  const auto load_normed = [&](const float* weight, bool embedded) {
    float4 by[kNormSteps];
    float4 v[kNormSteps];
#pragma unroll
    for (int step = 0; step < kNormSteps; ++step) {
      const std::uint32_t i = step * kStepFloats + threadIdx.x * 4;
      by[step] = i < p.dim ? *reinterpret_cast<const float4*>(weight + i) : float4{0, 0, 0, 0};
    }
    if (!embedded) barrier.wait();
    float squares = 0;
#pragma unroll
    for (int step = 0; step < kNormSteps; ++step) {
      const std::uint32_t i = step * kStepFloats + threadIdx.x * 4;
      v[step] = {0, 0, 0, 0};
      if (i >= p.dim) continue;
      if (embedded) {
        const auto at = [&](int k) {
          return matrix_value(p.embedding, static_cast<std::uint32_t>(token),
                              static_cast<int>(i) + k);
        };
        v[step] = {at(0), at(1), at(2), at(3)};
      } else {
        v[step] = __ldcg(reinterpret_cast<const float4*>(p.x + i));
      }
    }
#pragma unroll
    for (int step = 0; step < kNormSteps; ++step) {
      squares = fmaf(v[step].x, v[step].x, squares);
      squares = fmaf(v[step].y, v[step].y, squares);
      squares = fmaf(v[step].z, v[step].z, squares);
      squares = fmaf(v[step].w, v[step].w, squares);
    }
    squares = block_sum<kDecodeThreads>(squares, reduce);
    const float scale = rsqrtf(squares / static_cast<float>(p.dim) + p.epsilon);
#pragma unroll
    for (int step = 0; step < kNormSteps; ++step) {
      const std::uint32_t i = step * kStepFloats + threadIdx.x * 4;
      if (step * kStepFloats >= p.dim) break;
      const float4 normed = {v[step].x * scale * by[step].x, v[step].y * scale * by[step].y,
                             v[step].z * scale * by[step].z, v[step].w * scale * by[step].w};
      quantize_group(normed, i, i < p.dim, codes, scales, sums);
    }
    __syncthreads();
  };
  const auto load_plain = [&](const float* from, std::uint32_t cols) {
    barrier.wait();
    constexpr int kSteps = 7;  // 14,336 elements, Llama 3 8B's feed-forward, in flight at once
    for (std::uint32_t base = 0; base < cols; base += kSteps * kStepFloats) {
      float4 v[kSteps];
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        const std::uint32_t i = base + step * kStepFloats + threadIdx.x * 4;
        v[step] = i < cols ? __ldcg(reinterpret_cast<const float4*>(from + i)) : float4{0, 0, 0, 0};
      }
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        const std::uint32_t i = base + step * kStepFloats + threadIdx.x * 4;
        if (base + step * kStepFloats >= cols) break;
        quantize_group(v[step], i, i < cols, codes, scales, sums);
      }
    }
    __syncthreads();
  };
  // The product of this warp's next row with the quantised vector; every lane gets it.
  const auto next_row = [&](const DeviceMatrix& m) {
    float sum = 0;
    for (std::uint32_t at = 0; at < m.cols; at += m.segment_elements) {
      const std::uint32_t count =
          m.cols - at < m.segment_elements ? m.cols - at : m.segment_elements;
      const std::uint8_t* const segment = stream.wait();
      sum += lane_dot_any(m.type, segment, static_cast<int>(count),
                          {codes + at, scales + at / 32, sums + at / 16}, static_cast<int>(lane));
      stream.release();
    }
    return warp_sum(sum);
  };

  for (std::uint32_t index = 0; index < p.layer_count; ++index) {
    const DecodeLayer& layer = layers[index & 1];
    const DeviceLayer& w = layer.weights;
    const AttentionShape& shape = layer.shape;

    load_normed(w.attention_norm, index == 0);
    for (std::uint32_t row = first_row; row < shape.row(); row += row_step) {
      const bool is_q = row < w.q.rows;
      const bool is_k = !is_q && row < w.q.rows + w.k.rows;
      const std::uint32_t local = is_q ? row : (is_k ? row - w.q.rows : row - w.q.rows - w.k.rows);
      const float* const bias = is_q ? w.q_bias : (is_k ? w.k_bias : w.v_bias);
      const float y = next_row(is_q ? w.q : (is_k ? w.k : w.v));
      if (lane == 0) p.qkv[row] = bias == nullptr ? y : y + bias[local];
    }
    barrier.arrive();
    if (index + 1 < p.layer_count) {
      copy_words(layers + ((index + 1) & 1), p.layers + index + 1, sizeof(DecodeLayer));
    }
    barrier.wait();
    decode_attention<T>(p, io, layer, position, attention);
    barrier.arrive();

    load_plain(p.attended, shape.q_dim());
    for (std::uint32_t row = first_row; row < p.dim; row += row_step) {
      float old = 0;
      if (lane == 0) {
        old = index == 0 ? matrix_value(p.embedding, static_cast<std::uint32_t>(token),
                                        static_cast<int>(row))
                         : __ldcg(p.x + row);
        if (w.o_bias != nullptr) old += w.o_bias[row];
      }
      const float y = next_row(w.o);
      if (lane == 0) p.x[row] = old + y;
    }
    barrier.arrive();

    load_normed(w.feed_forward_norm, false);
    for (std::uint32_t row = first_row; row < layer.ffn_dim; row += row_step) {
      float gate = next_row(w.gate);
      float up = next_row(w.up);
      if (lane == 0) {
        if (w.gate_bias != nullptr) gate += w.gate_bias[row];
        if (w.up_bias != nullptr) up += w.up_bias[row];
        p.hidden[row] = gate / (1.0F + __expf(-gate)) * up;
      }
    }
    barrier.arrive();

    load_plain(p.hidden, layer.ffn_dim);
    for (std::uint32_t row = first_row; row < p.dim; row += row_step) {
      float old = 0;
      if (lane == 0) {
        old = __ldcg(p.x + row);
        if (w.down_bias != nullptr) old += w.down_bias[row];
      }
      const float y = next_row(w.down);
      if (lane == 0) p.x[row] = old + y;
    }
    barrier.arrive();
  }

  if (io.logits == nullptr) {
    barrier.wait();
  } else {
    load_normed(p.output_norm, false);
    Best best;
    for (std::uint32_t row = first_row; row < p.vocab; row += row_step) {
      const float y = next_row(p.head);
      if (lane == 0) {
        io.logits[row] = y;
        best.offer(y, row);
      }
    }
    if (io.next_token != nullptr) {
      auto* const bests = reinterpret_cast<Best*>(reduce);
      __syncthreads();
      if (lane == 0) bests[warp] = best;
      __syncthreads();
      if (threadIdx.x == 0) {
        for (std::uint32_t i = 1; i < kDecodeWarps; ++i) best.offer(bests[i].logit, bests[i].index);
        p.best[blockIdx.x] = {best.logit, __uint_as_float(best.index)};
      }
      barrier.arrive();
      if (blockIdx.x == 0) {
        barrier.wait();
        if (warp == 0) {
          best = {};
          for (std::uint32_t i = lane; i < gridDim.x; i += 32) {
            const float2 other = __ldcg(p.best + i);
            best.offer(other.x, __float_as_uint(other.y));
          }
          best.merge_warp();
          if (lane == 0) {
            *io.next_token = static_cast<TokenId>(best.index);
            *io.next_position = position + 1;
            if (io.produced != nullptr) {
              io.produced[*io.produced_count] = static_cast<TokenId>(best.index);
              ++*io.produced_count;
            }
          }
        }
      }
    }
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) p.counters[1] = barrier.target();
}

#else

template <typename T>
__global__ void decode_kernel(const __grid_constant__ DecodeParameters,
                              const __grid_constant__ DecodeIo) {}

#endif

template <typename T>
void launch(const DecodeParameters& p, const DecodeIo& io, std::uint32_t blocks,
            std::uint32_t shared_bytes, cudaStream_t stream) {
  // Cheap enough to repeat: it only records the limit.
  cudaFuncSetAttribute(decode_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(shared_bytes));
  void* arguments[] = {const_cast<DecodeParameters*>(&p), const_cast<DecodeIo*>(&io)};
  // Cooperative: all blocks must be resident, since they wait for each other.
  cudaLaunchCooperativeKernel(decode_kernel<T>, dim3(blocks), dim3(kDecodeThreads), arguments,
                              shared_bytes, stream);
}

}  // namespace

std::uint32_t decode_fixed_shared_bytes(const DecodeParameters& parameters) {
  return shared_map(parameters).ring;
}

void launch_decode(const DecodeParameters& parameters, const DecodeIo& io, KvPrecision kv,
                   std::uint32_t blocks, std::uint32_t shared_bytes, cudaStream_t stream) {
  if (kv == KvPrecision::f16) {
    launch<__half>(parameters, io, blocks, shared_bytes, stream);
  } else {
    launch<float>(parameters, io, blocks, shared_bytes, stream);
  }
}

}  // namespace edgerunner::cuda
