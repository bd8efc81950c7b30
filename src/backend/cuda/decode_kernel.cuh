#pragma once

#include "backend/cuda/decode_attention.cuh"
#include "backend/cuda/decode_plan.h"
#include "backend/cuda/decode_stream.cuh"
#include "backend/cuda/dot_q8.cuh"
#include "backend/cuda/published.cuh"
#include "backend/cuda/reduce.cuh"
#include "backend/cuda/unpack.cuh"

// One token in one persistent kernel: a block a multiprocessor, five phases a layer. Twelve warps
// compute, four more ask for their weights (decode_stream.cuh). docs/performance-cuda.md has
// the arithmetic.

namespace edgerunner::cuda {

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

// Which element types a kernel computes with. The types of one file's matrices are few, and code
// for all of them would not stay in the instruction cache.
enum class TypeSet { q8_0, k_quants, any };

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// Four neighbouring elements of a vector in a lane's registers, quantised together with those of
// the seven lanes beside it. Lanes past the end hold zeros and store nothing. Sums are needed by
// types whose codes have an offset.
template <bool kSums>
__device__ inline void quantize_group(float4 v, std::uint32_t i, bool inside, std::int8_t* codes,
                                      float* scales, float* sums) {
  float peak = fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
  for (int distance = 1; distance < 8; distance *= 2) {
    peak = fmaxf(peak, __shfl_xor_sync(0xFFFFFFFFU, peak, distance));
  }
  const float scale = peak * (1.0F / 127.0F);
  // Smaller peaks have no reciprocal, and add nothing.
  const float inverse = peak > 0x1p-100F ? 127.0F * reciprocal(peak) : 0.0F;
  // Added to 1.5 * 2^23, a float is rounded to an integer, whose code is its lowest byte.
  const auto rounded = [&](float x) {
    return __float_as_uint(fmaf(x, inverse, __int_as_float(kSumAsFloat)));
  };
  const std::uint32_t a = rounded(v.x);
  const std::uint32_t b = rounded(v.y);
  const std::uint32_t c = rounded(v.z);
  const std::uint32_t d = rounded(v.w);
  int sum = 0;
  if constexpr (kSums) {
    sum = static_cast<int>(a + b + c + d - 4U * kSumAsFloat);
    sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 1);
    sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 2);
  }
  if (!inside) return;
  *reinterpret_cast<std::uint32_t*>(codes + i) =
      __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
  if (kSums && i % 16 == 0) sums[i / 16] = scale * static_cast<float>(sum);
  if (i % 32 == 0) scales[i / 32] = scale;
}

constexpr std::uint32_t kStepFloats = kDecodeThreads * 4;  // of a vector, read by a block at once
// Steps in flight at once: Llama 3 8B's residual (4,096), and half of its feed-forward (14,336).
constexpr int kNormSteps = 3;
constexpr int kPlainSteps = 5;

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

template <TypeSet kSet, int kRows, bool kFull>
__device__ inline void lane_dot_of(ElementType type, const std::uint8_t* const (&segs)[kRows],
                                   int elements, const QuantizedVector& x, int lane,
                                   float (&sums)[kRows]) {
  if constexpr (kSet == TypeSet::q8_0) {
    lane_dot<ElementType::q8_0, kRows, kFull>(segs, elements, x, lane, sums);
  } else if constexpr (kSet == TypeSet::k_quants) {
    if (type == ElementType::q4_k) {
      lane_dot<ElementType::q4_k, kRows, kFull>(segs, elements, x, lane, sums);
    } else {
      lane_dot<ElementType::q6_k, kRows, kFull>(segs, elements, x, lane, sums);
    }
  } else {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      sums[r] += lane_dot_any(type, segs[r], elements, x, lane);
    }
  }
}

// Sums over the warp: of `a` in the lower half of the lanes and of `b` in the upper, and of
// `square` in all of them. Both at once, since a step waits for the one before.
struct WarpSums {
  float product;
  float squares;
};
__device__ inline WarpSums warp_sums(float a, float b, float square) {
  const bool upper = (threadIdx.x & 16) != 0;
  WarpSums sums = {(upper ? b : a) + __shfl_xor_sync(0xFFFFFFFFU, upper ? a : b, 16),
                   square + __shfl_xor_sync(0xFFFFFFFFU, square, 16)};
#pragma unroll
  for (int distance = 8; distance > 0; distance /= 2) {
    const float product = __shfl_xor_sync(0xFFFFFFFFU, sums.product, distance);
    const float squares = __shfl_xor_sync(0xFFFFFFFFU, sums.squares, distance);
    sums.product += product;
    sums.squares += squares;
  }
  return sums;
}

// The computing warps' part: all phases of a token.
template <typename T, int kDim, TypeSet kSet>
__device__ __forceinline__ void decode_token(const DecodeParameters& p, const DecodeIo& io,
                                             std::uint8_t* shared, std::uint32_t first_tag,
                                             std::uint32_t position) {
  const SharedMap& map = p.map;
  auto* const codes = reinterpret_cast<std::int8_t*>(shared);
  auto* const scales = reinterpret_cast<float*>(shared + map.scales);
  auto* const sums16 = reinterpret_cast<float*>(shared + map.sums);
  auto* const turns = reinterpret_cast<float2*>(shared + map.turns);
  auto* const table = reinterpret_cast<PageId*>(shared + map.table);
  auto* const layers = reinterpret_cast<DecodeLayer*>(shared + map.layers);
  auto* const reduce = reinterpret_cast<float*>(shared + map.reduce);
  auto* const squares = reinterpret_cast<float*>(shared + map.squares);
  auto* const residual = reinterpret_cast<float*>(shared + map.residual);
  auto& unit = *reinterpret_cast<AttentionUnit*>(reduce + 64);
  const std::uint32_t warp = threadIdx.x / 32;
  const std::uint32_t lane = threadIdx.x & 31;
  constexpr bool kSums = kSet != TypeSet::q8_0;

  WeightStream stream(p, shared);
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

  // Layers are described in shared memory, this one and the next. The last warp fetches them: it
  // has nothing else to do when attention begins.
  static_assert(sizeof(DecodeLayer) / 16 <= 32);
  const auto fetch_layer = [&](std::uint32_t index) {
    if (warp == kDecodeWarps - 1 && lane < sizeof(DecodeLayer) / 16) {
      copy_16(shared_address(layers + (index & 1)) + lane * 16,
              reinterpret_cast<const uint4*>(p.layers + index) + lane, true);
    }
    copy_commit();
  };
  long long* clocks = nullptr;
  if (threadIdx.x == 0 && io.timeline != nullptr) {
    clocks = io.timeline +
             static_cast<std::size_t>(blockIdx.x) * (4 * p.layer_count + 1) * kTimelinePoints;
    clocks[kPhaseBegun] = clock64();
  }
  const auto mark = [&](std::uint32_t step, std::uint32_t point) {
    if (clocks != nullptr) clocks[step * kTimelinePoints + point] = clock64();
  };

  // One body for all phases, so that the whole loop stays in the instruction cache.
  const std::uint32_t steps = 4 * p.layer_count + (io.logits != nullptr ? 1 : 0);
  Best best;
  for (std::uint32_t step = 0; step < steps; ++step) {
    const std::uint32_t kind = step == 4 * p.layer_count ? 4 : step & 3;
    const std::uint32_t tag = first_tag + (step >> 2);
    const DecodeLayer& layer = layers[(step >> 2) & 1];
    const DeviceLayer& w = layer.weights;
    // This warp's first row and its matrix, found before the input comes; of q, k and v, `part`
    // says which.
    std::uint32_t part = 0;
    std::uint32_t row = first_row(warp);  // in the matrix
    std::uint32_t rows = 0;               // of the matrix
    std::uint32_t before = 0;             // rows of the parts before
    std::uint32_t segment_elements = 0;
    ElementType type = ElementType::f32;
    const float* bias = nullptr;
    const auto begin_part = [&](const DeviceMatrix& matrix, const float* its_bias) {
      rows = matrix.rows;
      type = matrix.type;
      segment_elements = matrix.segment_elements;
      bias = its_bias;
    };
    const auto next_part = [&] {
      row -= rows;
      before += rows;
      ++part;
      begin_part(part == 1 ? w.k : w.v, part == 1 ? w.k_bias : w.v_bias);
    };
    const std::uint32_t upper = lane >> 4;  // lanes of the second of two rows
    const std::uint32_t step_rows = row_step();
    std::uint32_t cols = p.dim;
    if (kind == 0) {
      begin_part(w.q, w.q_bias);
      while (part < 2 && row >= rows) next_part();
    } else if (kind == 1) {
      begin_part(w.o, w.o_bias);
      cols = w.o.cols;
    } else if (kind == 2) {
      begin_part(w.gate, upper != 0 ? w.up_bias : w.gate_bias);
    } else if (kind == 3) {
      begin_part(w.down, w.down_bias);
      cols = w.down.cols;
    } else {
      begin_part(p.head, nullptr);
    }
    const DecodeLayer& neighbour = layers[((step >> 2) + 1) & 1];  // until attention the one before
    const bool fresh = kind == 0 && (step == 0 || !cut_alike(neighbour.shape, layer.shape));
    if (fresh && threadIdx.x == 0) unit.find(layer.shape, position, p.split_tokens);
    // What attention will read of the cache is brought into the L2 a layer ahead, while this one's
    // is awaited; but for the first layer and those whose cut of the sequence isn't known yet.
    if (kind == 1 && (step >> 2) + 1 < p.layer_count && cut_alike(neighbour.shape, layer.shape)) {
      prefetch_cache<T, kDim>(p, io, neighbour, unit, table);
    }
    const bool normed = (kind & 1) == 0;
    if (normed) {
      // The norm's scale is a factor of the whole vector: it is left out of the quantisation and
      // multiplies the products, so that nobody waits for the sum of squares.
      const float* const weight =
          kind == 0 ? w.attention_norm : (kind == 2 ? w.feed_forward_norm : p.output_norm);
      float square = 0;
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
#pragma unroll
        for (int s = 0; s < kNormSteps; ++s) {
          if (base + s * kStepFloats >= p.dim) break;
          const std::uint32_t i = first + s * kStepFloats;
          square = fmaf(v[s].x, v[s].x, square);
          square = fmaf(v[s].y, v[s].y, square);
          square = fmaf(v[s].z, v[s].z, square);
          square = fmaf(v[s].w, v[s].w, square);
          const float4 scaled_by = {v[s].x * by[s].x, v[s].y * by[s].y, v[s].z * by[s].z,
                                    v[s].w * by[s].w};
          quantize_group<kSums>(scaled_by, i, i < p.dim, codes, scales, sums16);
        }
      }
      squares[threadIdx.x] = square;
    } else {
      for (std::uint32_t base = 0; base < cols; base += kPlainSteps * kStepFloats) {
        float4 v[kPlainSteps];
        const std::uint32_t first = base + threadIdx.x * 4;
        receive<kPlainSteps, kStepFloats>(kind == 1 ? p.attended : p.hidden, first, cols, tag, v);
#pragma unroll
        for (int s = 0; s < kPlainSteps; ++s) {
          if (base + s * kStepFloats >= cols) break;
          const std::uint32_t i = first + s * kStepFloats;
          quantize_group<kSums>(v[s], i, i < cols, codes, scales, sums16);
        }
      }
    }
    mark(step, kPhaseReceived);
    sync_decoders();
    float square = 0;  // this lane's share
    if (normed) {
      constexpr std::uint32_t kEach = kDecodeThreads / 32;
      static_assert(kEach % 4 == 0);
#pragma unroll
      for (std::uint32_t i = 0; i < kEach; i += 4) {
        const float4 some = *reinterpret_cast<const float4*>(squares + lane * kEach + i);
        square += (some.x + some.y) + (some.z + some.w);
      }
    }
    std::uint32_t kept = warp + upper * kDecodeWarps;  // place of the lane's row in `residual`
#pragma unroll 1
    for (;;) {
#pragma unroll 1
      while (row < rows) {
        const bool two = kind == 2 || row + step_rows < rows;
        const std::uint32_t mine = kind == 2 ? row : row + upper * step_rows;
        const bool speaks = (lane & 15) == 0 && (upper == 0 || two);
        float added = 0;
        if (speaks && bias != nullptr) added = bias[mine];
        if (speaks && (kind & 1) != 0) added += residual[kept];
        float sums[2] = {0, 0};
#pragma unroll 1
        for (std::uint32_t at = 0;;) {
          const QuantizedVector x = {codes + at, scales + at / 32, sums16 + at / 16};
          const Stage a = stream.take();
          Stage b = a;
          if (two) {
            b = stream.take();
            const std::uint8_t* const pair[2] = {a.segment, b.segment};
            if (cols - at >= segment_elements) {
              lane_dot_of<kSet, 2, true>(type, pair, static_cast<int>(segment_elements), x,
                                         static_cast<int>(lane), sums);
            } else {
              lane_dot_of<kSet, 2, false>(type, pair, static_cast<int>(cols - at), x,
                                          static_cast<int>(lane), sums);
            }
          } else {
            const std::uint8_t* const one[1] = {a.segment};
            float sum[1] = {sums[0]};
            lane_dot_of<kSet, 1, false>(
                type, one,
                static_cast<int>(cols - at < segment_elements ? cols - at : segment_elements), x,
                static_cast<int>(lane), sum);
            sums[0] = sum[0];
          }
          at += segment_elements;
          // A row's sum goes out before its room is given back: others wait for it.
          if (at >= cols) {
            const WarpSums all = warp_sums(sums[0], sums[1], square);
            const float factor =
                normed ? reciprocal_root(fmaf(all.squares, p.inverse_dim, p.epsilon)) : 1.0F;
            const float sum = fmaf(all.product, factor, added);
            if (kind == 2) {
              const float other = __shfl_xor_sync(0xFFFFFFFFU, sum, 16);
              if (lane == 0) {
                publish(p.hidden + row, __fdividef(sum, 1.0F + __expf(-sum)) * other, tag);
              }
            } else if (speaks) {
              if (kind == 4) {
                io.logits[mine] = sum;
                best.offer(sum, mine);
              } else if (kind == 0) {
                publish(p.qkv + before + mine, sum, tag);
              } else {
                publish((kind == 1 ? p.x_middle : p.x) + mine, sum, kind == 1 ? tag : tag + 1);
                residual[kept] = sum;
              }
            }
          }
          __syncwarp();
          stream.give_back(a);
          if (two) stream.give_back(b);
          if (at >= cols) break;
        }
        row += two && kind != 2 ? 2 * step_rows : step_rows;
        kept += 2 * kDecodeWarps;
      }
      if (kind != 0 || part == 2) break;
      next_part();
    }
    mark(step, kPhaseRowsDone);
    if (kind == 0 && fresh) prefetch_cache<T, kDim>(p, io, layer, unit, table);
    // The quantised vector is read no more.
    sync_decoders();
    if (kind != 0) continue;
    if ((step >> 2) + 1 < p.layer_count) fetch_layer((step >> 2) + 1);
    decode_attention<T, kDim>(
        p, io, layer, unit, position, tag,
        {reinterpret_cast<float*>(shared), reinterpret_cast<float*>(shared + map.new_key),
         reinterpret_cast<float*>(shared + map.scratch), turns, table});
    copy_wait<0>();
    sync_decoders();
  }

  if (io.logits != nullptr && io.next_token != nullptr) {
    auto* const bests = reinterpret_cast<Best*>(reduce);
    best.merge_warp();
    if (lane == 0) bests[warp] = best;
    sync_decoders();
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
  if (blockIdx.x == 0 && threadIdx.x == 0) *p.next_tag = first_tag + p.layer_count + 1;
}

template <typename T, int kDim, TypeSet kSet>
__global__ void __launch_bounds__(kDecodeLaunchThreads, 1)
    decode_kernel(const __grid_constant__ DecodeParameters p, const __grid_constant__ DecodeIo io) {
  extern __shared__ __align__(128) std::uint8_t shared[];
  // What the whole token needs.
  const auto copy_words = [&](std::uint32_t to, const void* from, std::uint32_t bytes) {
    for (std::uint32_t i = threadIdx.x; i < bytes / 4; i += kDecodeLaunchThreads) {
      reinterpret_cast<std::uint32_t*>(shared + to)[i] = static_cast<const std::uint32_t*>(from)[i];
    }
  };
  copy_words(p.map.matrices, p.matrices,
             (p.layer_count * kLayerMatrices + 1) * sizeof(StreamMatrix));
  copy_words(p.map.layers, p.layers, sizeof(DecodeLayer));
  if (threadIdx.x < 2 * kDecodeWarps * p.stages) {
    mbarrier_init(reinterpret_cast<std::uint64_t*>(shared + p.map.full) + threadIdx.x, 1);
  }
  mbarrier_init_fence();
  const std::uint32_t first_tag = *static_cast<volatile unsigned*>(p.next_tag);
  const std::uint32_t position = *io.position;
  // Element i of this thread is row number i / (blocks * warps) of its warp: whoever computes a row
  // of the residual later finds it in shared memory.
  const std::uint32_t at = threadIdx.x * gridDim.x + blockIdx.x;
  if (at < p.dim) {
    const float x =
        matrix_value(p.embedding, static_cast<std::uint32_t>(*io.token), static_cast<int>(at));
    publish(p.x + at, x, first_tag);
    reinterpret_cast<float*>(shared + p.map.residual)[threadIdx.x] = x;
  }
  __syncthreads();
  // Registers would be 128 a thread; the requesting warps need few.
  if (threadIdx.x >= kDecodeThreads) {
    keep_registers<32>();
    WeightRequests(p, io.logits != nullptr, shared).run();
  } else {
    take_registers<160>();
    decode_token<T, kDim, kSet>(p, io, shared, first_tag, position);
  }
}

#else

template <typename T, int kDim, TypeSet kSet>
__global__ void decode_kernel(const __grid_constant__ DecodeParameters,
                              const __grid_constant__ DecodeIo) {}

#endif

template <typename T, int kDim, TypeSet kSet>
void launch_decode_kernel(const DecodeParameters& p, const DecodeIo& io, const DecodeLaunch& how) {
  const auto kernel = decode_kernel<T, kDim, kSet>;
  // Cheap enough to repeat: it only records the limit.
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(how.shared_bytes));
  void* arguments[] = {const_cast<DecodeParameters*>(&p), const_cast<DecodeIo*>(&io)};
  // Cooperative: all blocks must be resident, since they wait for each other.
  cudaLaunchCooperativeKernel(kernel, dim3(how.blocks), dim3(kDecodeLaunchThreads), arguments,
                              how.shared_bytes, how.stream);
}

template <TypeSet kSet>
void launch_decode_set(const DecodeParameters& p, const DecodeIo& io, const DecodeLaunch& how) {
  if (how.kv == KvPrecision::f32) {
    launch_decode_kernel<float, 0, kSet>(p, io, how);
  } else if (p.mma_head_dim == 128) {
    launch_decode_kernel<__half, 128, kSet>(p, io, how);
  } else if (p.mma_head_dim == 64) {
    launch_decode_kernel<__half, 64, kSet>(p, io, how);
  } else {
    launch_decode_kernel<__half, 0, kSet>(p, io, how);
  }
}

}  // namespace edgerunner::cuda
