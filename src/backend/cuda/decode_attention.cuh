#pragma once

#include <cuda_fp16.h>

#include <cfloat>
#include <cstdint>

#include "backend/cuda/decode_attention_mma.cuh"
#include "backend/cuda/decode_plan.h"
#include "backend/cuda/ptx.cuh"
#include "backend/cuda/published.cuh"
#include "backend/cuda/reduce.cuh"
#include "backend/executor.h"

// Attention of one new row inside the decode kernel. The keys of each kv head are cut into parts,
// a block each; the query heads that share the kv head are computed together, so that keys and
// values are read once. Scores are kept in powers of two.

namespace edgerunner::cuda {

inline constexpr int kHeadsPerPass = 4;  // their sums fill 24 registers

// A barrier of the warps that compute.
__device__ inline void sync_decoders() { sync_threads(1, kDecodeThreads); }

// Shared memory of an attention phase, in floats.
struct AttentionShared {
  float* queries;       // [group, head_dim], rotated and scaled
  float* new_key;       // [head_dim]; for the tensor cores, key and value in f16
  float* scratch;       // [kDecodeWarps][kHeadsPerPass][head_dim + 4]
  float2* turns;        // [pairs], cosine and sine of the position
  const PageId* table;  // the first pages of the page table
};

template <typename T>
struct Four;  // neighbouring values of the cache, as they came
template <>
struct Four<__half> {
  uint2 raw = {0, 0};
  __device__ void load(const __half* p) { raw = __ldcg(reinterpret_cast<const uint2*>(p)); }
  __device__ float4 values() const {
    const float2 low = __half22float2(*reinterpret_cast<const __half2*>(&raw.x));
    const float2 high = __half22float2(*reinterpret_cast<const __half2*>(&raw.y));
    return {low.x, low.y, high.x, high.y};
  }
};
template <>
struct Four<float> {
  float4 raw = {0, 0, 0, 0};
  __device__ void load(const float* p) { raw = __ldcg(reinterpret_cast<const float4*>(p)); }
  __device__ float4 values() const { return raw; }
};

// A running softmax: peak, sum of weights and weighted sum of four values of a head. The peak
// starts at the smallest number, not at minus infinity, so that no difference of peaks is
// undefined.
struct Running {
  float peak = -FLT_MAX;
  float total = 0;
  float4 sum = {0, 0, 0, 0};

  __device__ void join(float other_peak, float other_total, float4 other) {
    const float next = fmaxf(peak, other_peak);
    const float mine = exp2f(peak - next);
    const float theirs = exp2f(other_peak - next);
    total = fmaf(total, mine, other_total * theirs);
    sum.x = fmaf(sum.x, mine, other.x * theirs);
    sum.y = fmaf(sum.y, mine, other.y * theirs);
    sum.z = fmaf(sum.z, mine, other.z * theirs);
    sum.w = fmaf(sum.w, mine, other.w * theirs);
    peak = next;
  }
  // Joins what the lane `distance` away has gathered.
  __device__ void merge(int distance) {
    constexpr unsigned kAll = 0xFFFFFFFFU;
    const float4 other = {
        __shfl_xor_sync(kAll, sum.x, distance), __shfl_xor_sync(kAll, sum.y, distance),
        __shfl_xor_sync(kAll, sum.z, distance), __shfl_xor_sync(kAll, sum.w, distance)};
    const float other_peak = __shfl_xor_sync(kAll, peak, distance);
    join(other_peak, __shfl_xor_sync(kAll, total, distance), other);
  }
};

// Whether two layers' attention is cut in the same way.
__device__ inline bool cut_alike(const AttentionShape& a, const AttentionShape& b) {
  return a.kv_heads == b.kv_heads && a.window == b.window && a.q_dim() == b.q_dim();
}

// Joining takes one trip to the L2 for kJoinLanes * kJoinAtOnce parts: as many lanes share an
// output, and each asks for so many parts at once.
inline constexpr std::uint32_t kJoinLanes = 8;
inline constexpr std::uint32_t kJoinAtOnce = 3;
// Positions that the tensor cores of a block read in one round.
inline constexpr std::uint32_t kRoundTokens = 16 * kDecodeWarps;

// What this block does of a layer's attention: one part of the positions for one kv head, or
// nothing. A sequence is cut by its length alone. It takes divisions to find out, so it stands in
// shared memory until a layer comes that is cut in another way.
struct AttentionUnit {
  std::uint32_t splits;  // parts of a kv head's positions
  std::uint32_t kv, split;
  std::uint32_t first, last;  // positions of this block's part; none where it has nothing to do
  std::uint32_t slice;        // outputs of a kv head's group that a block joins

  __device__ void find(const AttentionShape& shape, std::uint32_t position, std::uint32_t fewest) {
    const std::uint32_t kv_heads = shape.kv_heads;
    const std::uint32_t window = shape.window;
    const std::uint32_t end = position + 1;
    const std::uint32_t begin = window != 0 && end > window ? end - window : 0;
    const std::uint32_t start = begin / kPageTokens * kPageTokens;  // the first one's page
    const std::uint32_t most = gridDim.x / kv_heads;
    // Positions, whole tiles of the tensor cores: a block each where all blocks are wanted, but no
    // more parts than are joined in one trip as long as a part is read in one round.
    const auto positions = [&](std::uint32_t parts) {
      return ((end - start + parts - 1) / parts + 15) / 16 * 16;
    };
    const std::uint32_t of_one_trip = positions(kJoinLanes * kJoinAtOnce);
    std::uint32_t part = of_one_trip < kRoundTokens ? of_one_trip : kRoundTokens;
    if (part < positions(most)) part = positions(most);
    if (part < fewest) part = fewest;
    splits = (end - start + part - 1) / part;
    kv = blockIdx.x % kv_heads;
    split = blockIdx.x / kv_heads;
    const std::uint32_t next = start + (split + 1) * part;
    first = split == 0 ? begin : start + split * part;
    last = split >= splits ? first : (next < end ? next : end);
    slice = (shape.q_dim() / kv_heads + splits - 1) / splits;
  }
};

// Brings this block's keys and values of earlier positions into the L2, a phase ahead. kDim is the
// head size where it is known, or 0.
template <typename T, int kDim>
__device__ inline void prefetch_cache(const DecodeParameters& p, const DecodeIo& io,
                                      const DecodeLayer& layer, const AttentionUnit& unit,
                                      const PageId* table) {
  const AttentionShape& shape = layer.shape;
  constexpr std::uint32_t kLine = 128 / sizeof(T);  // values of a cache line
  const std::uint32_t dim = kDim != 0 ? kDim : shape.head_dim;
  const std::uint32_t lines = (dim + kLine - 1) / kLine;
  for (std::uint32_t i = threadIdx.x; i < (unit.last - unit.first) * lines; i += kDecodeThreads) {
    const std::uint32_t t = unit.first + i / lines;
    const std::uint32_t index = t / kPageTokens;
    const std::size_t page = index < p.table_pages ? table[index] : __ldg(io.pages + index);
    const std::size_t at =
        ((page * shape.kv_heads + unit.kv) * kPageTokens + t % kPageTokens) * dim +
        i % lines * kLine;
    asm volatile("prefetch.global.L2 [%0];" ::"l"(static_cast<const T*>(layer.cache.keys) + at));
    asm volatile("prefetch.global.L2 [%0];" ::"l"(static_cast<const T*>(layer.cache.values) + at));
  }
}

// Joins the parts of the heads of one kv head; of their outputs, this block a slice. Parts are
// published [split][group][dim + 2]: sums, peak, total.
__device__ inline void join_parts(const DecodeParameters& p, const AttentionUnit& unit,
                                  std::uint32_t group, std::uint32_t dim, std::uint32_t tag) {
  const std::uint32_t begin = unit.split * unit.slice;
  const std::uint32_t end = begin + unit.slice < group * dim ? begin + unit.slice : group * dim;
  const std::uint32_t sub = threadIdx.x % kJoinLanes;
  // Whole warps go round together: they exchange sums.
  for (std::uint32_t base = begin; base < end; base += kDecodeThreads / kJoinLanes) {
    const std::uint32_t o = base + threadIdx.x / kJoinLanes;
    const std::uint32_t h = o / dim;
    float peak = -FLT_MAX;
    float total = 0;
    float sum = 0;
    const auto join = [&](float other_peak, float other_total, float other_sum) {
      const float next = fmaxf(peak, other_peak);
      const float mine = exp2_fast(peak - next);
      const float theirs = exp2_fast(other_peak - next);
      total = fmaf(total, mine, other_total * theirs);
      sum = fmaf(sum, mine, other_sum * theirs);
      peak = next;
    };
    for (std::uint32_t first = sub; first < unit.splits && o < end;
         first += kJoinAtOnce * kJoinLanes) {
      std::uint64_t words[kJoinAtOnce][3];
      bool waiting;
      do {
        waiting = false;
#pragma unroll
        for (std::uint32_t i = 0; i < kJoinAtOnce; ++i) {
          // Past the last part the first one stands in, and is left out below.
          const std::uint32_t part =
              first + i * kJoinLanes < unit.splits ? first + i * kJoinLanes : first;
          const std::uint64_t* const from =
              p.partials +
              (static_cast<std::size_t>(unit.kv * unit.splits + part) * group + h) * (dim + 2);
          words[i][0] = load_relaxed(from + o - h * dim);
          words[i][1] = load_relaxed(from + dim);
          words[i][2] = load_relaxed(from + dim + 1);
        }
#pragma unroll
        for (std::uint32_t i = 0; i < kJoinAtOnce; ++i) {
          waiting = waiting || !has_tag(words[i][0], tag) || !has_tag(words[i][1], tag) ||
                    !has_tag(words[i][2], tag);
        }
      } while (waiting);
#pragma unroll
      for (std::uint32_t i = 0; i < kJoinAtOnce; ++i) {
        if (first + i * kJoinLanes >= unit.splits) break;
        join(published_value(words[i][1]), published_value(words[i][2]),
             published_value(words[i][0]));
      }
    }
#pragma unroll
    for (std::uint32_t distance = 1; distance < kJoinLanes; distance *= 2) {
      const float other_peak = __shfl_xor_sync(0xFFFFFFFFU, peak, distance);
      const float other_total = __shfl_xor_sync(0xFFFFFFFFU, total, distance);
      const float other_sum = __shfl_xor_sync(0xFFFFFFFFU, sum, distance);
      join(other_peak, other_total, other_sum);
    }
    if (sub == 0 && o < end) {
      publish(p.attended + unit.kv * group * dim + o, __fdividef(sum, total), tag);
    }
  }
}

// A warp normalises and rotates one head from `from` (published by other blocks) into `to`.
__device__ inline void prepare_head(const DecodeParameters& p, const std::uint64_t* from,
                                    std::uint32_t tag, const float* norm, std::uint32_t head_dim,
                                    float scale, const float2* turns, float* to) {
  const std::uint32_t lane = threadIdx.x & 31;
  // Four values a lane, which arrive together: heads have 128 at most.
  float4 x = {0, 0, 0, 0};
  if (lane * 4 < head_dim) {
    x = receive_four(from, lane * 4, tag);
    *reinterpret_cast<float4*>(to + lane * 4) = {x.x * scale, x.y * scale, x.z * scale,
                                                 x.w * scale};
  }
  float squares = x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w;
  __syncwarp();
  if (norm != nullptr) {
    squares = warp_sum(squares);
    const float by = 1.0F / sqrtf(squares / static_cast<float>(head_dim) + p.epsilon);
    for (std::uint32_t i = lane; i < head_dim; i += 32) to[i] *= by * norm[i];
    __syncwarp();
  }
  const bool neighbours = p.rope_layout == RopeLayout::interleaved;
  for (std::uint32_t pair = lane; pair < p.pairs; pair += 32) {
    const float2 turn = turns[pair];
    float* const a = to + (neighbours ? 2 * pair : pair);
    float* const b = to + (neighbours ? 2 * pair + 1 : pair + p.pairs);
    const float x = *a;
    const float y = *b;
    *a = x * turn.x - y * turn.y;
    *b = x * turn.y + y * turn.x;
  }
  __syncwarp();
}

// The same in registers, four values a lane: for the layouts that DecodePlan lets the tensor cores
// have.
template <int kDim>
__device__ inline float4 prepare_quad(const DecodeParameters& p, const std::uint64_t* from,
                                      std::uint32_t tag, const float* norm, float scale,
                                      const float2* turns) {
  const std::uint32_t lane = threadIdx.x & 31;
  const bool inside = lane * 4 < kDim;
  float4 by = {scale, scale, scale, scale};
  if (norm != nullptr && inside) {
    by = *reinterpret_cast<const float4*>(norm + lane * 4);
    by = {by.x * scale, by.y * scale, by.z * scale, by.w * scale};
  }
  float4 x = {0, 0, 0, 0};
  if (inside) x = receive_four(from, lane * 4, tag);
  if (norm != nullptr) {
    const float squares = warp_sum(x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w);
    const float root = rsqrtf(squares / static_cast<float>(kDim) + p.epsilon);
    x = {x.x * root, x.y * root, x.z * root, x.w * root};
  }
  x = {x.x * by.x, x.y * by.y, x.z * by.z, x.w * by.w};
  if (p.rope_layout == RopeLayout::interleaved) {
    if (lane * 2 < p.pairs) {
      const float4 turn = *reinterpret_cast<const float4*>(turns + lane * 2);
      x = {x.x * turn.x - x.y * turn.y, x.x * turn.y + x.y * turn.x, x.z * turn.z - x.w * turn.w,
           x.z * turn.w + x.w * turn.z};
    }
  } else if (p.pairs != 0) {
    const std::uint32_t distance = p.pairs / 4;  // in lanes, from a pair's one element to its other
    constexpr unsigned kAll = 0xFFFFFFFFU;
    const float4 other = {
        __shfl_xor_sync(kAll, x.x, distance), __shfl_xor_sync(kAll, x.y, distance),
        __shfl_xor_sync(kAll, x.z, distance), __shfl_xor_sync(kAll, x.w, distance)};
    if (lane < 2 * distance) {
      const auto* const turn =
          reinterpret_cast<const float4*>(turns + lane * 4 % p.pairs);  // two pairs each
      const float4 a = turn[0];
      const float4 b = turn[1];
      const float sign = lane < distance ? -1.0F : 1.0F;
      x = {fmaf(x.x, a.x, sign * other.x * a.y), fmaf(x.y, a.z, sign * other.y * a.w),
           fmaf(x.z, b.x, sign * other.z * b.y), fmaf(x.w, b.z, sign * other.w * b.w)};
    }
  }
  return x;
}

__device__ inline uint2 to_halves(float4 x) { return {pack_half2(x.x, x.y), pack_half2(x.z, x.w)}; }

template <typename T>
__device__ inline T to_cache(float x) {
  if constexpr (sizeof(T) == 2) {
    return __float2half_rn(x);
  } else {
    return x;
  }
}

// The same on plain arithmetic, for any head size up to 128 and either precision of the cache.
template <typename T, typename PageOf>
__device__ inline void attend_plainly(const AttentionShared& s, const T* keys, const T* values,
                                      const AttentionShape& shape, std::uint32_t kv,
                                      std::uint32_t first, std::uint32_t last, std::uint32_t group,
                                      std::uint32_t h0, const PageOf& page_of) {
  constexpr std::uint32_t kUnroll =
      sizeof(T) == 2 ? 4 : 2;  // positions of a lane whose loads are in flight together
  const std::uint32_t dim = shape.head_dim;
  const std::uint32_t warp = threadIdx.x / 32;
  const std::uint32_t lane = threadIdx.x & 31;
  // Lanes of a position: four values each, rounded up to a power of two.
  std::uint32_t lanes = 1;
  while (lanes * 4 < dim && lanes < 32) lanes *= 2;
  const std::uint32_t slots = 32 / lanes;  // positions that a warp reads at once
  const std::uint32_t sub = lane & (lanes - 1);
  const std::uint32_t slot = lane / lanes;
  const bool inside = sub * 4 < dim;

  Running running[kHeadsPerPass];
  for (std::uint32_t base = first + warp * slots; base < last;
       base += kDecodeWarps * slots * kUnroll) {
    Four<T> key[kUnroll];
    Four<T> value[kUnroll];
#pragma unroll
    for (std::uint32_t u = 0; u < kUnroll; ++u) {
      const std::uint32_t t = base + u * kDecodeWarps * slots + slot;
      if (t < last && inside) {
        const std::size_t at =
            ((static_cast<std::size_t>(page_of(t)) * shape.kv_heads + kv) * kPageTokens +
             t % kPageTokens) *
                dim +
            sub * 4;
        key[u].load(keys + at);
        value[u].load(values + at);
      }
    }
#pragma unroll
    for (int h = 0; h < kHeadsPerPass; ++h) {
      if (h0 + h >= group) break;
      float4 query = {0, 0, 0, 0};
      if (inside) {
        query = *reinterpret_cast<const float4*>(s.queries + (h0 + h) * dim + sub * 4);
      }
      float score[kUnroll];
#pragma unroll
      for (std::uint32_t u = 0; u < kUnroll; ++u) {
        const float4 k = key[u].values();
        score[u] = fmaf(query.x, k.x, fmaf(query.y, k.y, fmaf(query.z, k.z, query.w * k.w)));
      }
#pragma unroll
      for (std::uint32_t distance = 16; distance > 0; distance /= 2) {
#pragma unroll
        for (std::uint32_t u = 0; u < kUnroll; ++u) {
          const float other = __shfl_xor_sync(0xFFFFFFFFU, score[u], distance);
          if (distance < lanes) score[u] += other;
        }
      }
#pragma unroll
      for (std::uint32_t u = 0; u < kUnroll; ++u) {
        const std::uint32_t t = base + u * kDecodeWarps * slots + slot;
        if (t < last) running[h].join(score[u], 1.0F, value[u].values());
      }
    }
  }
  // Slots of the warp, then warps, then (below) the parts.
#pragma unroll
  for (int h = 0; h < kHeadsPerPass; ++h) {
    if (h0 + h >= group) break;
#pragma unroll
    for (std::uint32_t distance = 1; distance < 32; distance *= 2) {
      if (distance >= lanes) running[h].merge(static_cast<int>(distance));
    }
    float* const to = s.scratch + (warp * kHeadsPerPass + h) * (dim + 4);
    if (slot == 0 && inside) *reinterpret_cast<float4*>(to + sub * 4) = running[h].sum;
    if (lane == 0) {
      to[dim] = running[h].peak;
      to[dim + 1] = running[h].total;
    }
  }
}

// kDim is the head size where the tensor cores compute it (f16 cache), or 0.
template <typename T, int kDim>
__device__ inline void decode_attention(const DecodeParameters& p, const DecodeIo& io,
                                        const DecodeLayer& layer, const AttentionUnit& unit,
                                        std::uint32_t position, std::uint32_t tag,
                                        const AttentionShared& s) {
  const AttentionShape shape = layer.shape;
  const std::uint32_t dim = kDim != 0 ? kDim : shape.head_dim;
  constexpr std::uint32_t kPassHeads = kDim != 0 ? 8 : kHeadsPerPass;
  const std::uint32_t scratch_heads = kDim != 0 ? p.scratch_heads : kHeadsPerPass;
  const std::uint32_t group = shape.heads / shape.kv_heads;
  const std::uint32_t warp = threadIdx.x / 32;
  const std::uint32_t lane = threadIdx.x & 31;
  const auto page_of = [&](std::uint32_t t) {
    const std::uint32_t index = t / kPageTokens;
    return index < p.table_pages ? s.table[index] : __ldg(io.pages + index);
  };
  T* const keys = static_cast<T*>(layer.cache.keys);
  T* const values = static_cast<T*>(layer.cache.values);

  const std::uint32_t end = position + 1;
  const std::uint32_t splits = unit.splits;
  const std::uint32_t kv = unit.kv;
  const std::uint32_t split = unit.split;
  const std::uint32_t first = unit.first;
  const std::uint32_t last = unit.last;
  if (first == last) return;

  // Tiles of the tensor cores begin at multiples of 16; warps that have positions of this part.
  const std::uint32_t first_tile = first / 16 * 16;
  const std::uint32_t tiles = (last - first_tile + 15) / 16;
  const std::uint32_t active = kDim == 0 || tiles >= kDecodeWarps ? kDecodeWarps : tiles;
  const std::uint32_t own_tile = first_tile + warp * 16;
  [[maybe_unused]] CacheTile<kDim != 0 ? kDim : 64> tile;
  auto* const halves = reinterpret_cast<__half*>(s.queries);
  auto* const new_halves = reinterpret_cast<__half*>(s.new_key);
  const auto head_of = [&] {
    return CachedHead<decltype(page_of)>{reinterpret_cast<const __half*>(keys),
                                         reinterpret_cast<const __half*>(values),
                                         shape.kv_heads,
                                         kv,
                                         first,
                                         last,
                                         position,
                                         new_halves,
                                         new_halves + dim,
                                         page_of};
  };
  const std::size_t new_at =
      ((static_cast<std::size_t>(page_of(position)) * shape.kv_heads + kv) * kPageTokens +
       position % kPageTokens) *
      dim;
  if constexpr (kDim != 0) {
    if (own_tile < last) tile.load(head_of(), own_tile);
    if (warp < group) {
      const float4 x = prepare_quad<kDim>(p, p.qkv + (kv * group + warp) * kDim, tag,
                                          layer.weights.q_norm, shape.scale * 1.44269504F, s.turns);
      if (lane * 4 < kDim) {
        *reinterpret_cast<uint2*>(halves + warp * kDim + lane * 4) = to_halves(x);
      }
    } else if (last == end && warp < group + 2) {
      const bool is_key = warp == group;
      float4 x = {0, 0, 0, 0};
      if (is_key) {
        x = prepare_quad<kDim>(p, p.qkv + shape.q_dim() + kv * kDim, tag, layer.weights.k_norm,
                               1.0F, s.turns);
      } else if (lane * 4 < kDim) {
        x = receive_four(p.qkv + shape.q_dim() + shape.kv_dim() + kv * kDim, lane * 4, tag);
      }
      if (lane * 4 < kDim) {
        const uint2 packed = to_halves(x);
        *reinterpret_cast<uint2*>(new_halves + (is_key ? 0 : kDim) + lane * 4) = packed;
        *reinterpret_cast<uint2*>((is_key ? keys : values) + new_at + lane * 4) = packed;
      }
    }
  } else if (warp < group) {
    prepare_head(p, p.qkv + (kv * group + warp) * dim, tag, layer.weights.q_norm, dim,
                 shape.scale * 1.44269504F, s.turns, s.queries + warp * dim);
  } else if (last == end && warp < group + 2) {
    if (warp == group) {
      prepare_head(p, p.qkv + shape.q_dim() + kv * dim, tag, layer.weights.k_norm, dim, 1.0F,
                   s.turns, s.new_key);
      for (std::uint32_t i = lane; i < dim; i += 32) keys[new_at + i] = to_cache<T>(s.new_key[i]);
    } else {
      const std::uint64_t* const from = p.qkv + shape.q_dim() + shape.kv_dim() + kv * dim;
      if (lane * 4 < dim) {
        const float4 x = receive_four(from, lane * 4, tag);
        T* const to = values + new_at + lane * 4;
        to[0] = to_cache<T>(x.x);
        to[1] = to_cache<T>(x.y);
        to[2] = to_cache<T>(x.z);
        to[3] = to_cache<T>(x.w);
      }
    }
  }
  sync_decoders();

  for (std::uint32_t h0 = 0; h0 < group; h0 += kPassHeads) {
    if constexpr (kDim != 0) {
      if (h0 != 0 && own_tile < last) tile.load(head_of(), own_tile);
      if (warp < active) {
        attend_on_tensor_cores<kDim>(halves, s.scratch, scratch_heads, head_of(), own_tile, tile,
                                     group, h0);
      }
    } else {
      attend_plainly<T>(s, keys, values, shape, kv, first, last, group, h0, page_of);
    }
    sync_decoders();
    const std::uint32_t heads = group - h0 < kPassHeads ? group - h0 : kPassHeads;
    for (std::uint32_t o = threadIdx.x; o < heads * dim; o += kDecodeThreads) {
      const std::uint32_t h = o / dim;
      const std::uint32_t i = o - h * dim;
      // All are read at once; a warp without positions counts as nothing.
      float peaks[kDecodeWarps];
      float totals[kDecodeWarps];
      float sums[kDecodeWarps];
#pragma unroll
      for (std::uint32_t w = 0; w < kDecodeWarps; ++w) {
        const float* const from = s.scratch + (w * scratch_heads + h) * (dim + 4);
        const bool used = w < active;
        peaks[w] = used ? from[dim] : -FLT_MAX;
        totals[w] = used ? from[dim + 1] : 0;
        sums[w] = used ? from[i] : 0;
      }
      float peak = peaks[0];
#pragma unroll
      for (std::uint32_t w = 1; w < kDecodeWarps; ++w) peak = fmaxf(peak, peaks[w]);
      float total = 0;
      float sum = 0;
#pragma unroll
      for (std::uint32_t w = 0; w < kDecodeWarps; ++w) {
        const float weight = exp2_fast(peaks[w] - peak);
        total = fmaf(weight, totals[w], total);
        sum = fmaf(weight, sums[w], sum);
      }
      if (splits == 1) {
        publish(p.attended + (kv * group + h0 + h) * dim + i, __fdividef(sum, total), tag);
      } else {
        std::uint64_t* const to =
            p.partials +
            (static_cast<std::size_t>(kv * splits + split) * group + h0 + h) * (dim + 2);
        publish(to + i, sum, tag);
        if (i == 0) {
          publish(to + dim, peak, tag);
          publish(to + dim + 1, total, tag);
        }
      }
    }
    if (h0 + kPassHeads < group) sync_decoders();
  }
  if (splits > 1) join_parts(p, unit, group, dim, tag);
}

}  // namespace edgerunner::cuda
