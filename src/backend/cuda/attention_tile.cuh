#pragma once

#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cfloat>
#include <cstdint>
#include <type_traits>

#include "backend/cuda/cache_values.cuh"
#include "backend/cuda/mma.cuh"
#include "backend/cuda/ptx.cuh"

// What a warp does of attention on the tensor cores, after FlashAttention-2 (Dao 2023): 16 rows of
// queries against a tile of keys and values in shared memory. Scores never leave registers and are
// kept in powers of two. The cache is f16, or e4m3 codes that become f16 in registers.

namespace edgerunner::cuda {

inline constexpr float kLog2E = 1.44269504F;

// How keys, or values, lie in shared memory. Rows are an odd number of 16-byte chunks apart: so the
// same chunk of eight rows lies in eight different groups of four banks, for any head size.
template <typename T, int kDim>
struct TileRows {
  static constexpr bool kScaled = CacheValues<T>::kScaled;
  static constexpr int kChunks = kDim * static_cast<int>(sizeof(T)) / 16;
  static constexpr int kPitch = (kChunks | 1) * 16;  // bytes

  __device__ static std::uint32_t at(int row, int chunk) {
    return static_cast<std::uint32_t>(row * kPitch + chunk * 16);
  }
};

// Brings kKeys rows into shared memory, of which the first `used` hold something; zeros take the
// place of the others, which are perhaps not numbers. The thread is one of kThreads.
template <typename T, int kDim, int kKeys, int kThreads>
__device__ inline void fetch_rows(std::uint32_t to, const T* from, std::uint32_t used, int thread) {
  using Rows = TileRows<T, kDim>;
  constexpr int kCount = kKeys * Rows::kChunks;
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(from);
  if (kThreads % Rows::kChunks == 0 && used >= kKeys) {
    // The most frequent case: a thread's chunks are at even distances.
    const std::uint32_t first = to + Rows::at(thread / Rows::kChunks, thread % Rows::kChunks);
#pragma unroll
    for (int i = 0; i < kCount / kThreads; ++i) {
      copy_16(first + Rows::at(i * (kThreads / Rows::kChunks), 0),
              bytes + 16 * thread + 16 * kThreads * i, true);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < (kCount + kThreads - 1) / kThreads; ++i) {
    const int index = i * kThreads + thread;
    if (kCount % kThreads != 0 && index >= kCount) break;
    const int row = index / Rows::kChunks;
    const bool there = static_cast<std::uint32_t>(row) < used;
    copy_16(to + Rows::at(row, index % Rows::kChunks), bytes + (there ? 16 * index : 0), there);
  }
}

// The scales of kKeys rows; those of unused rows are what they are.
template <int kKeys>
__device__ inline void fetch_scales(std::uint32_t to, const float* from, int thread) {
  if (thread < kKeys / 4) copy_16(to + 16 * thread, from + 4 * thread, true);
}

__device__ inline std::uint32_t widen_e4m3(std::uint32_t pair) {
  const __half2_raw wide =
      __nv_cvt_fp8x2_to_halfraw2(static_cast<__nv_fp8x2_storage_t>(pair), __NV_E4M3);
  return static_cast<std::uint32_t>(wide.x) | (static_cast<std::uint32_t>(wide.y) << 16);
}

// cap * tanh(x / cap): tanh y = 1 - 2 / (e^2y + 1). Off by 1e-7 of the cap.
__device__ inline float capped_fast(float x, float cap) {
  const float power = exp2_fast(x * (2.0F * kLog2E / cap));
  return cap - 2.0F * cap * reciprocal(power + 1.0F);
}

// A lane's share of 16 rows of queries: 16 of a head's values of each.
struct QueryFragment {
  std::uint32_t part[4];
};

// 16 rows of queries, this lane's being lane / 4 and 8 more, over tiles of kKeys keys. The order of
// a head's values inside a product is free, so that of codes follows how four of them come in a
// register.
template <typename T, int kDim, int kKeys>
struct WarpAttention {
  using Rows = TileRows<T, kDim>;
  static constexpr bool kScaled = Rows::kScaled;
  static constexpr int kSteps = kDim / 16;
  using Scores = float[kKeys / 8][4];

  float sum[kDim / 8][4];
  float peak[2];  // begins at the smallest number: no difference of peaks is undefined
  float total[2];

  // The pair of a head's values that half `half` of step `step` holds in lane `quarter` of four.
  __device__ static int column(int step, int half,
                               int quarter = static_cast<int>(threadIdx.x & 3)) {
    return 16 * step + (kScaled ? 4 * quarter + 2 * half : 8 * half + 2 * quarter);
  }
  __device__ float2 output(int step, int half, int r) const {
    if constexpr (kScaled) {
      return {sum[2 * step][2 * r + half], sum[2 * step + 1][2 * r + half]};
    } else {
      return {sum[2 * step + half][2 * r], sum[2 * step + half][2 * r + 1]};
    }
  }

  __device__ void begin() {
#pragma unroll
    for (int d = 0; d < kDim / 8; ++d) {
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[d][i] = 0;
    }
    peak[0] = peak[1] = -FLT_MAX;
    total[0] = total[1] = 0;
  }

  // Row r's queries, for scores in powers of two; zeros where there is no such row.
  __device__ static void load_query(int r, const float* from, float scale, bool valid,
                                    QueryFragment (&query)[kSteps]) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float2 q = {0, 0};
        if (valid) q = *reinterpret_cast<const float2*>(from + column(step, half));
        query[step].part[2 * half + r] = pack_half2(q.x * scale, q.y * scale);
      }
    }
  }

  // Of a step, from rows in shared memory (TileRows<__half, kDim>), values in the order that
  // column() gives.
  __device__ static QueryFragment shared_query(std::uint32_t tile, int step) {
    const int lane = static_cast<int>(threadIdx.x & 31);
    QueryFragment query;
    load_matrices(query.part, tile + TileRows<__half, kDim>::at(lane & 15, 2 * step + (lane >> 4)));
    return query;
  }

  // Queries, query_of(step), times the keys at k_tile.
  template <typename QueryOf>
  __device__ static void multiply_keys(std::uint32_t k_tile, const QueryOf& query_of,
                                       Scores& score) {
    const int lane = static_cast<int>(threadIdx.x & 31);
#pragma unroll
    for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) score[j][i] = 0;
    }
#pragma unroll
    for (int step = 0; step < kSteps; step += kScaled ? 2 : 1) {
      QueryFragment query[kScaled ? 2 : 1];
      query[0] = query_of(step);
      if constexpr (kScaled) {
        if (step + 1 < kSteps) query[1] = query_of(step + 1);
      }
#pragma unroll
      for (int j = 0; j < kKeys / 16; ++j) {
        std::uint32_t b[4];
        if constexpr (kScaled) {
          // Four times 8 keys of 16 codes: of a step, then of the next, where there is one.
          load_matrices(b, k_tile + Rows::at(16 * j + (lane & 15), step + (lane >> 4)));
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            if (step + i / 2 < kSteps) {
              const std::uint32_t(&a)[4] = query[i / 2].part;
              mma_f16(score[2 * j + i % 2], a[0], a[1], a[2], a[3], widen_e4m3(b[i] & 0xFFFFU),
                      widen_e4m3(b[i] >> 16));
            }
          }
        } else {
          const int key = 16 * j + (lane & 7) + ((lane >> 4) << 3);
          load_matrices(b, k_tile + Rows::at(key, 2 * step + ((lane >> 3) & 1)));
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            const std::uint32_t(&a)[4] = query[0].part;
            mma_f16(score[2 * j + i], a[0], a[1], a[2], a[3], b[2 * i], b[2 * i + 1]);
          }
        }
      }
    }
  }

  // Multiplies scores with their keys' scales (of codes alone) and caps them where there is a cap,
  // in powers of two.
  __device__ static void finish_scores(const float* key_scales, float cap, Scores& score) {
    const std::uint32_t pair = 2 * (threadIdx.x & 3);
#pragma unroll
    for (int j = 0; j < kKeys / 8; ++j) {
      if constexpr (kScaled) {
        const float2 scale = *reinterpret_cast<const float2*>(key_scales + 8 * j + pair);
#pragma unroll
        for (int i = 0; i < 4; ++i) score[j][i] *= i % 2 == 0 ? scale.x : scale.y;
      }
      if (cap != 0) {
#pragma unroll
        for (int i = 0; i < 4; ++i) score[j][i] = capped_fast(score[j][i], cap);
      }
    }
  }

  // Turns scores into weights beside the highest of the row, for the tile's keys that the rows at
  // `position` see: from first_key on, up to the position, and inside the window. A code's weight
  // has its value's scale in it: so weights fit f16 whatever the scales, and a row's peak depends
  // on no key that it doesn't see.
  __device__ void weigh(Scores& score, const float* value_scales, std::uint32_t first_key,
                        const std::uint32_t (&position)[2], std::uint32_t window) {
    const std::uint32_t pair = 2 * (threadIdx.x & 3);
    float unscale[kScaled ? kKeys / 8 : 1][2];
    if constexpr (kScaled) {
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j) {
        const float2 raw = *reinterpret_cast<const float2*>(value_scales + 8 * j + pair);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          // Drops what is no number, and keeps the reciprocal finite.
          const float scale = fmaxf(i == 0 ? raw.x : raw.y, 1e-30F);
          const float power = __log2f(scale);
          unscale[j][i] = reciprocal(scale);
          score[j][i] += power;
          score[j][i + 2] += power;
        }
      }
    }
    if (first_key + kKeys - 1 > min(position[0], position[1]) || window != 0) {
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const std::uint32_t key = first_key + 8 * j + pair + (i & 1);
          const std::uint32_t at = position[i >> 1];
          if (key > at || (window != 0 && key + window <= at)) score[j][i] = -INFINITY;
        }
      }
    }
    float shrink[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float next = peak[r];
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j) {
        next = fmaxf(next, fmaxf(score[j][2 * r], score[j][2 * r + 1]));
      }
      next = fmaxf(next, __shfl_xor_sync(0xFFFFFFFFU, next, 1));
      next = fmaxf(next, __shfl_xor_sync(0xFFFFFFFFU, next, 2));
      shrink[r] = exp2_fast(peak[r] - next);
      peak[r] = next;
      total[r] *= shrink[r];
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float& weight = score[j][2 * r + i];
          weight = exp2_fast(weight - next);
          if constexpr (kScaled) {
            total[r] = fmaf(weight, unscale[j][i], total[r]);
          } else {
            total[r] += weight;
          }
        }
      }
    }
    // Peaks change seldom after the first tiles.
    if (shrink[0] != 1 || shrink[1] != 1) {
#pragma unroll
      for (int d = 0; d < kDim / 8; ++d) {
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[d][i] *= shrink[i / 2];
      }
    }
  }

  // Adds the weighted values at v_tile.
  __device__ void add_values(std::uint32_t v_tile, const Scores& weight) {
    const int lane = static_cast<int>(threadIdx.x & 31);
#pragma unroll
    for (int j = 0; j < kKeys / 16; ++j) {
      const std::uint32_t a0 = pack_half2(weight[2 * j][0], weight[2 * j][1]);
      const std::uint32_t a1 = pack_half2(weight[2 * j][2], weight[2 * j][3]);
      const std::uint32_t a2 = pack_half2(weight[2 * j + 1][0], weight[2 * j + 1][1]);
      const std::uint32_t a3 = pack_half2(weight[2 * j + 1][2], weight[2 * j + 1][3]);
      const int key = 16 * j + (lane & 15);
#pragma unroll
      for (int step = 0; step < kSteps; step += kScaled ? 2 : 1) {
        std::uint32_t b[4];
        if constexpr (kScaled) {
          // Transposed in pairs of codes: a register holds two of each of two keys, so that even
          // columns make one product and odd ones another.
          load_matrices_transposed(b, v_tile + Rows::at(key, step + (lane >> 4)));
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            if (step + i < kSteps) {
              const std::uint32_t low = __byte_perm(b[2 * i], 0, 0x3120);
              const std::uint32_t high = __byte_perm(b[2 * i + 1], 0, 0x3120);
              mma_f16(sum[2 * (step + i)], a0, a1, a2, a3, widen_e4m3(low & 0xFFFFU),
                      widen_e4m3(high & 0xFFFFU));
              mma_f16(sum[2 * (step + i) + 1], a0, a1, a2, a3, widen_e4m3(low >> 16),
                      widen_e4m3(high >> 16));
            }
          }
        } else {
          load_matrices_transposed(b, v_tile + Rows::at(key, 2 * step + (lane >> 4)));
          mma_f16(sum[2 * step], a0, a1, a2, a3, b[0], b[1]);
          mma_f16(sum[2 * step + 1], a0, a1, a2, a3, b[2], b[3]);
        }
      }
    }
  }

  // The lanes' shares of the rows' totals, added up.
  __device__ void finish_totals() {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      total[r] += __shfl_xor_sync(0xFFFFFFFFU, total[r], 1);
      total[r] += __shfl_xor_sync(0xFFFFFFFFU, total[r], 2);
    }
  }
};

inline constexpr bool tile_head_dim(std::uint32_t dim) {
  return dim == 64 || dim == 80 || dim == 96 || dim == 128 || dim == 256;
}

// Calls visit(keys, values, head size) with the CacheValues of a layer and a constant, for a head
// size of the above and a cache of f16 or codes.
template <typename Visit>
void visit_tiles(const DeviceCache& cache, std::uint32_t head_dim, const Visit& visit) {
  visit_cache(cache, [&](auto keys, auto values) {
    if constexpr (sizeof(*keys.codes) <= 2) {
      const auto with = [&](auto dim) { visit(keys, values, dim); };
      switch (head_dim) {
        case 64:
          return with(std::integral_constant<int, 64>{});
        case 80:
          return with(std::integral_constant<int, 80>{});
        case 96:
          return with(std::integral_constant<int, 96>{});
        case 128:
          return with(std::integral_constant<int, 128>{});
        default:
          return with(std::integral_constant<int, 256>{});
      }
    }
  });
}

}  // namespace edgerunner::cuda
