#include "backend/cuda/decode_attention.cuh"
#include "backend/cuda/decode_plan.h"
#include "backend/cuda/decode_stream.cuh"
#include "backend/cuda/dot_q8.cuh"
#include "backend/cuda/published.cuh"
#include "backend/cuda/reduce.cuh"
#include "backend/cuda/unpack.cuh"

// One token in one persistent kernel: a block a multiprocessor, five phases a layer, a barrier over
// the grid after each. docs/performance-cuda.md has the arithmetic.

namespace edgerunner::cuda {
namespace {

constexpr std::uint32_t align(std::uint32_t bytes) { return (bytes + 127) & ~127U; }

__device__ inline float matrix_value(const DeviceMatrix& m, std::uint32_t row, int i) {
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
// Steps in flight at once: Llama 3 8B's residual (4,096), and half of its feed-forward (14,336).
constexpr int kNormSteps = 2;
constexpr int kPlainSteps = 4;

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

// Which element types a kernel computes with. The types of one file's matrices are few, and code
// for all of them would not stay in the instruction cache.
enum class TypeSet { q8_0, k_quants, any };

template <TypeSet kSet>
__device__ inline float lane_dot_of(ElementType type, const std::uint8_t* seg, int elements,
                                    const QuantizedVector& x, int lane) {
  if constexpr (kSet == TypeSet::q8_0) {
    return lane_dot<ElementType::q8_0>(seg, elements, x, lane);
  } else if constexpr (kSet == TypeSet::k_quants) {
    return type == ElementType::q4_k ? lane_dot<ElementType::q4_k>(seg, elements, x, lane)
                                     : lane_dot<ElementType::q6_k>(seg, elements, x, lane);
  } else {
    return lane_dot_any(type, seg, elements, x, lane);
  }
}

template <typename T, int kDim, TypeSet kSet>
__global__ void __launch_bounds__(kDecodeThreads, 1)
    decode_kernel(const __grid_constant__ DecodeParameters p, const __grid_constant__ DecodeIo io) {
  extern __shared__ __align__(128) std::uint8_t shared[];
  const SharedMap& map = p.map;
  auto* const codes = reinterpret_cast<std::int8_t*>(shared);
  auto* const scales = reinterpret_cast<float*>(shared + map.scales);
  auto* const sums = reinterpret_cast<float*>(shared + map.sums);
  auto* const turns = reinterpret_cast<float2*>(shared + map.turns);
  auto* const table = reinterpret_cast<PageId*>(shared + map.table);
  auto* const matrices = reinterpret_cast<StreamMatrix*>(shared + map.matrices);
  auto* const layers = reinterpret_cast<DecodeLayer*>(shared + map.layers);
  auto* const reduce = reinterpret_cast<float*>(shared + map.reduce);
  auto* const full = reinterpret_cast<std::uint64_t*>(shared + map.full);

  const std::uint32_t warp = threadIdx.x / 32;
  const std::uint32_t lane = threadIdx.x & 31;

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
  const std::uint32_t first_tag = *static_cast<volatile unsigned*>(p.counters);
  const std::uint32_t position = *io.position;
  {
    const TokenId token = *io.token;
    const std::uint32_t i = threadIdx.x * gridDim.x + blockIdx.x;
    for (std::uint32_t at = i; at < p.dim; at += gridDim.x * kDecodeThreads) {
      publish(p.x + at,
              matrix_value(p.embedding, static_cast<std::uint32_t>(token), static_cast<int>(at)),
              first_tag);
    }
  }
  __syncthreads();

  WeightStream stream(p, io.logits != nullptr, shared);
  stream.start();
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

  const auto mark = [&](std::uint32_t step, std::uint32_t point) {
    if (io.timeline == nullptr || threadIdx.x != 0) return;
    io.timeline[(static_cast<std::size_t>(blockIdx.x) * (4 * p.layer_count + 1) + step) *
                    kTimelinePoints +
                point] = clock64();
  };

  // One body for all phases, so that the whole loop stays in the instruction cache.
  const std::uint32_t steps = 4 * p.layer_count + (io.logits != nullptr ? 1 : 0);
  Best best;
  for (std::uint32_t step = 0; step < steps; ++step) {
    const std::uint32_t kind = step == 4 * p.layer_count ? 4 : step & 3;
    const std::uint32_t tag = first_tag + (step >> 2);
    const DecodeLayer& layer = layers[(step >> 2) & 1];
    const DeviceLayer& w = layer.weights;
    mark(step, 0);
    // The page table stands in shared memory from the first phase's barrier on.
    if (kind == 0 && step != 0) prefetch_cache<T>(p, io, layer, position, table);
    const bool normed = (kind & 1) == 0;
    if (normed) {
      // The norm's scale is a factor of the whole vector: it is left out of the quantisation and
      // multiplies the products, so that nobody waits for the sum of squares.
      const float* const weight =
          kind == 0 ? w.attention_norm : (kind == 2 ? w.feed_forward_norm : p.output_norm);
      float squares = 0;
      for (std::uint32_t base = 0; base < p.dim; base += kNormSteps * kStepFloats) {
        float4 by[kNormSteps];
        float4 v[kNormSteps];
        const std::uint32_t first = base + threadIdx.x * 4;
#pragma unroll
        for (int s = 0; s < kNormSteps; ++s) {
          const std::uint32_t i = first + s * kStepFloats;
          by[s] = i < p.dim ? *reinterpret_cast<const float4*>(weight + i) : float4{0, 0, 0, 0};
        }
        receive<kNormSteps, kStepFloats>(kind == 2 ? p.x_middle : p.x, first, p.dim, tag, v);
        mark(step, 1);
#pragma unroll
        for (int s = 0; s < kNormSteps; ++s) {
          if (base + s * kStepFloats >= p.dim) break;
          const std::uint32_t i = first + s * kStepFloats;
          squares = fmaf(v[s].x, v[s].x, squares);
          squares = fmaf(v[s].y, v[s].y, squares);
          squares = fmaf(v[s].z, v[s].z, squares);
          squares = fmaf(v[s].w, v[s].w, squares);
          const float4 scaled_by = {v[s].x * by[s].x, v[s].y * by[s].y, v[s].z * by[s].z,
                                    v[s].w * by[s].w};
          quantize_group(scaled_by, i, i < p.dim, codes, scales, sums);
        }
      }
      squares = warp_sum(squares);
      if (lane == 0) reduce[warp] = squares;
    } else {
      const std::uint32_t cols = kind == 1 ? layer.shape.q_dim() : layer.ffn_dim;
      for (std::uint32_t base = 0; base < cols; base += kPlainSteps * kStepFloats) {
        float4 v[kPlainSteps];
        const std::uint32_t first = base + threadIdx.x * 4;
        receive<kPlainSteps, kStepFloats>(kind == 1 ? p.attended : p.hidden, first, cols, tag, v);
        mark(step, 1);
#pragma unroll
        for (int s = 0; s < kPlainSteps; ++s) {
          if (base + s * kStepFloats >= cols) break;
          const std::uint32_t i = first + s * kStepFloats;
          quantize_group(v[s], i, i < cols, codes, scales, sums);
        }
      }
    }
    __syncthreads();
    float factor = 1;
    if (normed) {
      const float squares = warp_sum(lane < kDecodeWarps ? reduce[lane] : 0.0F);
      factor = rsqrtf(squares / static_cast<float>(p.dim) + p.epsilon);
    }
    mark(step, 2);

    const std::uint32_t rows =
        kind == 0 ? layer.shape.row() : (kind == 2 ? layer.ffn_dim : (kind == 4 ? p.vocab : p.dim));
    float gate = 0;  // this lane's share of it
    float gate_added = 0;
    bool second = false;  // of the two rows of a feed-forward output
#pragma unroll 1
    for (std::uint32_t row = WeightStream::first_row(); row < rows;) {
      const DeviceMatrix* m = &p.head;
      float added = 0;  // bias, residual
      if (kind == 0) {
        const bool is_q = row < w.q.rows;
        const bool is_k = !is_q && row < w.q.rows + w.k.rows;
        m = is_q ? &w.q : (is_k ? &w.k : &w.v);
        const float* const bias = is_q ? w.q_bias : (is_k ? w.k_bias : w.v_bias);
        if (bias != nullptr) {
          added = bias[is_q ? row : (is_k ? row - w.q.rows : row - w.q.rows - w.k.rows)];
        }
      } else if (kind == 2) {
        m = second ? &w.up : &w.gate;
        const float* const bias = second ? w.up_bias : w.gate_bias;
        if (bias != nullptr) added = bias[row];
      } else if (kind != 4) {
        m = kind == 1 ? &w.o : &w.down;
        const float* const bias = kind == 1 ? w.o_bias : w.down_bias;
        if (lane == 0) {
          added = published_value(load_relaxed((kind == 1 ? p.x : p.x_middle) + row));
          if (bias != nullptr) added += bias[row];
        }
      }

      float sum = 0;
      const ElementType type = m->type;
      const std::uint32_t cols = m->cols;
      const std::uint32_t segment_elements = m->segment_elements;
#pragma unroll 1
      for (std::uint32_t at = 0; at < cols; at += segment_elements) {
        const std::uint32_t count = cols - at < segment_elements ? cols - at : segment_elements;
        const std::uint8_t* const segment = stream.wait();
        sum += lane_dot_of<kSet>(type, segment, static_cast<int>(count),
                                 {codes + at, scales + at / 32, sums + at / 16},
                                 static_cast<int>(lane));
        if (at + segment_elements >= cols) {
          // The result leaves before the next request is made: others wait for it.
          sum = kind == 2 && !second ? sum : fmaf(warp_sum(sum), factor, added);
          if (kind == 2) {
            if (second) {
              gate = fmaf(warp_sum(gate), factor, gate_added);
            } else {
              gate = sum;
              gate_added = added;
            }
          }
          if ((kind != 2 || second) && lane == 0) {
            if (kind == 0) {
              publish(p.qkv + row, sum, tag);
            } else if (kind == 1) {
              publish(p.x_middle + row, sum, tag);
            } else if (kind == 2) {
              publish(p.hidden + row, gate / (1.0F + __expf(-gate)) * sum, tag);
            } else if (kind == 3) {
              publish(p.x + row, sum, tag + 1);
            } else {
              io.logits[row] = sum;
              best.offer(sum, row);
            }
          }
        }
        stream.release();
      }
      if (kind == 2 && !second) {
        second = true;
      } else {
        second = false;
        row += WeightStream::row_step();
      }
    }
    mark(step, 3);
    // The quantised vector is read no more.
    __syncthreads();
    mark(step, 4);
    if (kind != 0) continue;
    if ((step >> 2) + 1 < p.layer_count) {
      copy_words(layers + (((step >> 2) + 1) & 1), p.layers + (step >> 2) + 1, sizeof(DecodeLayer));
    }
    decode_attention<T, kDim>(
        p, io, layer, position, tag,
        {reinterpret_cast<float*>(shared), reinterpret_cast<float*>(shared + map.new_key),
         reinterpret_cast<float*>(shared + map.scratch), turns, table,
         reinterpret_cast<int*>(reduce + 64)});
    __syncthreads();
    mark(step, 5);
  }

  if (io.logits != nullptr && io.next_token != nullptr) {
    auto* const bests = reinterpret_cast<Best*>(reduce);
    if (lane == 0) bests[warp] = best;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (std::uint32_t i = 1; i < kDecodeWarps; ++i) best.offer(bests[i].logit, bests[i].index);
      publish(p.best + 2 * blockIdx.x, best.logit, first_tag);
      publish(p.best + 2 * blockIdx.x + 1, __uint_as_float(best.index), first_tag);
    }
    if (blockIdx.x == 0 && warp == 0) {
      best = {};
      for (std::uint32_t i = lane; i < gridDim.x; i += 32) {
        const float logit = receive(p.best + 2 * i, first_tag);
        best.offer(logit, __float_as_uint(receive(p.best + 2 * i + 1, first_tag)));
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
  if (blockIdx.x == 0 && threadIdx.x == 0) p.counters[0] = first_tag + p.layer_count + 1;
}

#else

enum class TypeSet { q8_0, k_quants, any };
template <typename T, int kDim, TypeSet kSet>
__global__ void decode_kernel(const __grid_constant__ DecodeParameters,
                              const __grid_constant__ DecodeIo) {}

#endif

template <typename T, int kDim, TypeSet kSet>
void launch(const DecodeParameters& p, const DecodeIo& io, std::uint32_t blocks,
            std::uint32_t shared_bytes, cudaStream_t stream) {
  // Cheap enough to repeat: it only records the limit.
  cudaFuncSetAttribute(decode_kernel<T, kDim, kSet>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(shared_bytes));
  void* arguments[] = {const_cast<DecodeParameters*>(&p), const_cast<DecodeIo*>(&io)};
  // Cooperative: all blocks must be resident, since they wait for each other.
  cudaLaunchCooperativeKernel(decode_kernel<T, kDim, kSet>, dim3(blocks), dim3(kDecodeThreads),
                              arguments, shared_bytes, stream);
}

template <typename T, int kDim>
void launch_set(const DecodeParameters& p, const DecodeIo& io, std::uint32_t blocks,
                std::uint32_t shared_bytes, cudaStream_t stream) {
  if (p.type_mask == type_bit(ElementType::q8_0)) {
    launch<T, kDim, TypeSet::q8_0>(p, io, blocks, shared_bytes, stream);
  } else if ((p.type_mask & ~(type_bit(ElementType::q4_k) | type_bit(ElementType::q6_k))) == 0) {
    launch<T, kDim, TypeSet::k_quants>(p, io, blocks, shared_bytes, stream);
  } else {
    launch<T, kDim, TypeSet::any>(p, io, blocks, shared_bytes, stream);
  }
}

}  // namespace

SharedMap decode_shared_map(const DecodeParameters& p) {
  SharedMap m{};
  m.scales = align(p.widest);
  m.sums = m.scales + align(p.widest / 32 * 4);
  const std::uint32_t activations = m.sums + align(p.widest / 16 * 4);
  // Eight heads of f16 at least, which the tensor cores read.
  m.new_key =
      align(p.widest_group * 4 > 16 * p.widest_head ? p.widest_group * 4 : 16 * p.widest_head);
  m.scratch = m.new_key + align(p.widest_head * 4);
  const std::uint32_t attention =
      m.scratch + align(kDecodeWarps * p.scratch_heads * (p.widest_head + 4) * 4);
  m.turns = activations > attention ? activations : attention;
  m.table = m.turns + align(p.pairs * 8);
  m.matrices = m.table + align(p.table_pages * 4);
  m.layers = m.matrices + align((p.layer_count * kLayerMatrices + 1) *
                                static_cast<std::uint32_t>(sizeof(StreamMatrix)));
  m.cursors = m.layers + align(2 * static_cast<std::uint32_t>(sizeof(DecodeLayer)));
  m.reduce = m.cursors + align(kDecodeWarps * static_cast<std::uint32_t>(sizeof(StreamCursor)));
  m.ring = m.reduce + 512;
  m.full = m.ring + kDecodeWarps * p.stages * p.stage_bytes;
  return m;
}

void launch_decode(const DecodeParameters& parameters, const DecodeIo& io, KvPrecision kv,
                   std::uint32_t blocks, std::uint32_t shared_bytes, cudaStream_t stream) {
  if (kv == KvPrecision::f32) {
    launch_set<float, 0>(parameters, io, blocks, shared_bytes, stream);
  } else if (parameters.mma_head_dim == 128) {
    launch_set<__half, 128>(parameters, io, blocks, shared_bytes, stream);
  } else if (parameters.mma_head_dim == 64) {
    launch_set<__half, 64>(parameters, io, blocks, shared_bytes, stream);
  } else {
    launch_set<__half, 0>(parameters, io, blocks, shared_bytes, stream);
  }
}

}  // namespace edgerunner::cuda
