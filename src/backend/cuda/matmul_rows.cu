#include <algorithm>

#include "backend/cuda/chain.cuh"
#include "backend/cuda/few_rows.h"
#include "backend/cuda/mma.cuh"
#include "backend/cuda/ptx.cuh"
#include "backend/cuda/unpack.cuh"

// A block of 16 warps takes 256 outputs by 128 columns at a time: eight warps side by side have 32
// outputs each, and two groups of them have 64 columns each. Codes and headers come through a ring
// in shared memory by asynchronous copies. A lane reads what it needs as neighbouring bytes: inside
// a product the order of the columns is free, so it is the weights' own, and the activations follow
// it. Runs on sm_80 and later.

namespace edgerunner::cuda {
namespace {

constexpr int kThreads = 512;
constexpr int kTile = static_cast<int>(kTileOutputs);
constexpr int kCols = static_cast<int>(kUnitCols);
constexpr int kXStride = kCols * 2 + 16;  // bytes of a row of activations: neighbours miss each
                                          // other's banks

__device__ inline __half2 as_half2(std::uint32_t x) { return *reinterpret_cast<__half2*>(&x); }
__device__ inline std::uint32_t as_word(__half2 x) { return *reinterpret_cast<std::uint32_t*>(&x); }

// Four codes in the bytes of `codes`, below 128 each or biased by 128: 0x6400 + n is 1024 + n in
// f16, exactly.
__device__ inline void widen(std::uint32_t codes, __half2 bias, __half2& low, __half2& high) {
  low = __hsub2(as_half2(__byte_perm(codes, 0x64646464U, 0x4140)), bias);
  high = __hsub2(as_half2(__byte_perm(codes, 0x64646464U, 0x4342)), bias);
}

// What a type's unit looks like in shared memory, and how a lane makes its sixteen weights of a row
// from it: eight neighbouring ones at column kFirst(c), and eight at kSecond(c), of the 64 columns
// of its group; c is lane & 3.
template <ElementType T>
struct UnitOf;

template <>
struct UnitOf<ElementType::q8_0> {
  static constexpr int kCodeBytes = 128;  // of a row
  static constexpr int kHeaderBytes = 8;
  __device__ static std::uint32_t place(int row, int piece) {
    return static_cast<std::uint32_t>(row * 128 + ((piece ^ ((row & 1) << 2)) << 4));
  }
  __device__ static const std::uint8_t* code(const std::uint8_t* seg, int, int at, int piece) {
    return seg + at + 16 * piece;
  }
  __device__ static void header(std::uint32_t to, const std::uint8_t* seg, int n, int at,
                                bool used) {
    copy_8(to, seg + (used ? 32 * n + at / 16 : 0), used);
  }
  __device__ static int first(int c) { return 16 * c; }
  __device__ static int second(int c) { return 16 * c + 8; }
  __device__ static void weights(const std::uint8_t* codes, const std::uint8_t* headers, int row,
                                 int group, int c, int, std::uint32_t (&out)[8]) {
    const uint4 q = *reinterpret_cast<const uint4*>(codes + place(row, 4 * group + c));
    const __half2 scale = __half2half2(
        *reinterpret_cast<const __half*>(headers + row * kHeaderBytes + 4 * group + 2 * (c >> 1)));
    const __half2 bias = __float2half2_rn(1024.0F + 128.0F);
    const std::uint32_t words[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      __half2 low;
      __half2 high;
      widen(words[i] ^ 0x80808080U, bias, low, high);
      out[2 * i] = as_word(__hmul2(low, scale));
      out[2 * i + 1] = as_word(__hmul2(high, scale));
    }
  }
};

// scale * code + offset for the low and the high nibbles of eight bytes.
__device__ inline void unpack_nibbles(uint2 q, __half2 scale_low, __half2 offset_low,
                                      __half2 scale_high, __half2 offset_high,
                                      std::uint32_t (&out)[8]) {
  const __half2 bias = __float2half2_rn(1024.0F);
  const std::uint32_t words[4] = {q.x & 0x0F0F0F0FU, q.y & 0x0F0F0F0FU, (q.x >> 4) & 0x0F0F0F0FU,
                                  (q.y >> 4) & 0x0F0F0F0FU};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    __half2 a;
    __half2 b;
    widen(words[i], bias, a, b);
    out[2 * i] =
        as_word(__hfma2(a, i < 2 ? scale_low : scale_high, i < 2 ? offset_low : offset_high));
    out[2 * i + 1] =
        as_word(__hfma2(b, i < 2 ? scale_low : scale_high, i < 2 ? offset_low : offset_high));
  }
}

// Codes of 4 bits: 64 bytes a row, pieces permuted so that eight-byte reads of a half-warp miss
// each other's banks.
struct NibbleUnit {
  static constexpr int kCodeBytes = 64;
  __device__ static std::uint32_t place(int row, int piece) {
    return static_cast<std::uint32_t>(row * 64 + ((piece ^ (row & 2)) << 4));
  }
  // Eight bytes of the group's 32.
  __device__ static uint2 eight(const std::uint8_t* codes, int row, int group, int at) {
    return *reinterpret_cast<const uint2*>(codes + place(row, 2 * group + at / 16) + at % 16);
  }
};

template <bool kOffset>
struct Unit4 : NibbleUnit {  // q4_0, q4_1: blocks of 32, so two of them in a group
  static constexpr int kHeaderBytes = kOffset ? 16 : 8;
  __device__ static const std::uint8_t* code(const std::uint8_t* seg, int, int at, int piece) {
    return seg + at / 2 + 16 * piece;
  }
  __device__ static void header(std::uint32_t to, const std::uint8_t* seg, int n, int at,
                                bool used) {
    if constexpr (kOffset) {
      copy_16(to, seg + (used ? 16 * n + at / 8 : 0), used);
    } else {
      copy_8(to, seg + (used ? 16 * n + at / 16 : 0), used);
    }
  }
  __device__ static int first(int c) { return 32 * (c >> 1) + 8 * (c & 1); }
  __device__ static int second(int c) { return first(c) + 16; }
  __device__ static void weights(const std::uint8_t* codes, const std::uint8_t* headers, int row,
                                 int group, int c, int, std::uint32_t (&out)[8]) {
    const uint2 q = eight(codes, row, group, 8 * c);
    const int block = 2 * group + (c >> 1);
    __half2 scale;
    __half2 offset;
    if constexpr (kOffset) {
      const __half2 dm =
          *reinterpret_cast<const __half2*>(headers + row * kHeaderBytes + 4 * block);
      scale = __low2half2(dm);
      offset = __high2half2(dm);
    } else {
      scale =
          __half2half2(*reinterpret_cast<const __half*>(headers + row * kHeaderBytes + 2 * block));
      offset = __hmul2(scale, __float2half2_rn(-8.0F));
    }
    unpack_nibbles(q, scale, offset, scale, offset, out);
  }
};
template <>
struct UnitOf<ElementType::q4_0> : Unit4<false> {};
template <>
struct UnitOf<ElementType::q4_1> : Unit4<true> {};

template <>
struct UnitOf<ElementType::q4_k> : NibbleUnit {
  static constexpr int kHeaderBytes = 16;  // four scales, four minima, d and dmin; four unused
  __device__ static const std::uint8_t* code(const std::uint8_t* seg, int, int at, int piece) {
    return seg + at / 2 + 16 * piece;
  }
  __device__ static void header(std::uint32_t to, const std::uint8_t* seg, int n, int at,
                                bool used) {
    copy_8(to, seg + (used ? 128 * n + at / 128 * 8 : 0), used);
    copy_4(to + 8, seg + (used ? 144 * n + at / 256 * 4 : 0), used);
  }
  __device__ static int first(int c) { return 8 * c; }
  __device__ static int second(int c) { return 32 + 8 * c; }
  __device__ static void weights(const std::uint8_t* codes, const std::uint8_t* headers, int row,
                                 int group, int c, int, std::uint32_t (&out)[8]) {
    const uint2 q = eight(codes, row, group, 8 * c);
    const uint4 h = *reinterpret_cast<const uint4*>(headers + row * kHeaderBytes);
    // The group's two sub-blocks have neighbouring bytes of scales and minima.
    const std::uint32_t scale = h.x >> (16 * group);
    const std::uint32_t minimum = h.y >> (16 * group);
    const float2 dm = __half22float2(as_half2(h.z));
    const auto scaled_by = [](float by, std::uint32_t x) {
      return __float2half2_rn(by * static_cast<float>(x & 0xFFU));
    };
    unpack_nibbles(q, scaled_by(dm.x, scale), scaled_by(-dm.y, minimum),
                   scaled_by(dm.x, scale >> 8), scaled_by(-dm.y, minimum >> 8), out);
  }
};

template <>
struct UnitOf<ElementType::q6_k> {
  static constexpr int kCodeBytes = 96;  // 64 of low nibbles, 32 of high pairs
  static constexpr int kHeaderBytes = 16;
  __device__ static std::uint32_t place(int row, int piece) {
    return static_cast<std::uint32_t>(piece < 4 ? row * 64 + piece * 16
                                                : kTile * 64 + row * 32 + (piece - 4) * 16);
  }
  __device__ static const std::uint8_t* code(const std::uint8_t* seg, int n, int at, int piece) {
    return piece < 4 ? seg + at / 2 + 16 * piece : seg + 128 * n + at / 4 + 16 * (piece - 4);
  }
  __device__ static void header(std::uint32_t to, const std::uint8_t* seg, int n, int at,
                                bool used) {
    copy_8(to, seg + (used ? 192 * n + at / 16 : 0), used);
    copy_4(to + 8, seg + (used ? (208 * n + at / 256 * 2) & ~3 : 0), used);
  }
  __device__ static int first(int c) { return 16 * c; }
  __device__ static int second(int c) { return 16 * c + 8; }
  __device__ static void weights(const std::uint8_t* codes, const std::uint8_t* headers, int row,
                                 int group, int c, int block_half, std::uint32_t (&out)[8]) {
    // block_half: bit 0 says which half of a block the unit is, bit 1 which of two blocks' scales.
    const uint4 ql = *reinterpret_cast<const uint4*>(codes + place(row, c));
    const uint4 qh = *reinterpret_cast<const uint4*>(codes + place(row, 4 + (c & 1)));
    const std::uint8_t* const header = headers + row * kHeaderBytes;
    const float d = half_at(header + 8 + (block_half & 2));
    const __half2 scale =
        __float2half2_rn(d * static_cast<float>(static_cast<std::int8_t>(header[4 * group + c])));
    const int low_shift = 4 * group;
    const int high_shift = 2 * (2 * group + (c >> 1));
    const __half2 bias = __float2half2_rn(1024.0F + 32.0F);
    const std::uint32_t low[4] = {ql.x, ql.y, ql.z, ql.w};
    const std::uint32_t high[4] = {qh.x, qh.y, qh.z, qh.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t word =
          ((low[i] >> low_shift) & 0x0F0F0F0FU) | (((high[i] >> high_shift) & 0x03030303U) << 4);
      __half2 a;
      __half2 b;
      widen(word, bias, a, b);
      out[2 * i] = as_word(__hmul2(a, scale));
      out[2 * i + 1] = as_word(__hmul2(b, scale));
    }
  }
};

constexpr std::size_t kFullShared = 224 * 1024;  // of a block on Hopper, all but a little

struct Arguments {
  StackedMatrices w;
  HalfRows x;
  std::uint32_t rows;     // of activations
  std::uint32_t outputs;  // of this launch
  UnitCut cut;
  float* parts;
};

template <ElementType T, int kRows>
struct Sizes {
  using Unit = UnitOf<T>;
  static constexpr int kHeaders = kTile * Unit::kCodeBytes;
  static constexpr int kX = kHeaders + kTile * Unit::kHeaderBytes;
  static constexpr int kStage = kX + kRows * kXStride;
  static constexpr int kReduce = kTile * kRows * 4;
  static constexpr int kFit = (static_cast<int>(kFullShared) - kReduce) / kStage;
  static constexpr int kStages = kFit < 4 ? kFit : 4;
};

// Stages that are waited for together: with four of them two, which halves the barriers.
template <int kStages>
constexpr int kTogether = kStages == 4 ? 2 : 1;

template <ElementType T, int kRows, int kStages>
__global__ void __launch_bounds__(kThreads, 1) rows_kernel(const __grid_constant__ Arguments m) {
  using Unit = UnitOf<T>;
  using Size = Sizes<T, kRows>;
  constexpr Layout kLayout = layout(T);
  constexpr int kTilesN = kRows / 8;
  constexpr int kPieces = Unit::kCodeBytes / 16;
  extern __shared__ __align__(128) std::uint8_t shared[];
  const int lane = static_cast<int>(threadIdx.x & 31);
  const int warp = static_cast<int>(threadIdx.x / 32);
  const int c = lane & 3;
  const int r = lane >> 2;
  const int side = warp & 7;    // 32 outputs of the tile
  const int group = warp >> 3;  // 64 columns of the unit
  const std::uint32_t base = shared_address(shared);
  const std::uint32_t cols = m.w.part[0].cols;
  const std::uint32_t begin = m.cut.begin(blockIdx.x);
  const std::uint32_t end = m.cut.begin(blockIdx.x + 1);

  // Where this thread's copies of a tile begin, in 16 bytes from the first matrix: found once a
  // tile, since a tile is many units and the loop is short.
  constexpr int kCopies = kTile * kPieces / kThreads;
  constexpr std::uint32_t kNone = 0xFFFFFFFFU;
  const std::uint8_t* const base_data = m.w.part[0].data;
  std::uint32_t from[kCopies];
  std::uint32_t header_from = kNone;
  std::uint32_t next_tile = begin / m.cut.units;
  std::uint32_t next_k = begin - next_tile * m.cut.units;
  const auto row_of = [&](std::uint32_t output) {
    if (output >= m.outputs) return kNone;
    std::uint32_t row = m.w.first + output;
    std::uint32_t i = 0;
    while (row >= m.w.part[i].rows) row -= m.w.part[i++].rows;
    return static_cast<std::uint32_t>(
        (m.w.part[i].data - base_data + static_cast<std::size_t>(row) * m.w.part[i].row_bytes) /
        16);
  };
  const auto find_rows = [&] {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      from[i] = row_of(next_tile * kTile + (i * kThreads + threadIdx.x) / kPieces);
    }
    if (threadIdx.x < kTile) header_from = row_of(next_tile * kTile + threadIdx.x);
  };
  find_rows();
  // Asks for the next unit's weights.
  const auto fetch_weights = [&](std::uint32_t stage) {
    if (next_k == m.cut.units) {
      next_k = 0;
      ++next_tile;
      find_rows();
    }
    const std::uint32_t k = next_k++ * kCols;
    const std::uint32_t segment = k / kLayout.segment_elements;
    const int at = static_cast<int>(k - segment * kLayout.segment_elements);
    const std::uint32_t rest = cols - segment * kLayout.segment_elements;
    const int count = static_cast<int>(
        rest < kLayout.segment_elements ? rest : kLayout.segment_elements);  // of the segment
    const int n = count / static_cast<int>(kLayout.block_length);
    const std::uint8_t* const data = base_data + segment * segment_bytes(kLayout);
    const std::uint32_t to = base + stage * Size::kStage;
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int index = i * kThreads + static_cast<int>(threadIdx.x);
      const int row = index / kPieces;
      const int piece = index % kPieces;
      // Blocks of 32 may end inside the unit; a piece never lies across such an end.
      const bool used =
          from[i] != kNone && (kLayout.block_length > 32 || at + piece * (kCols / kPieces) < count);
      copy_16(to + Unit::place(row, piece),
              used ? Unit::code(data + std::size_t{from[i]} * 16, n, at, piece) : base_data, used);
    }
    if (threadIdx.x < kTile) {
      const bool used = header_from != kNone;
      Unit::header(to + Size::kHeaders + threadIdx.x * Unit::kHeaderBytes,
                   used ? data + std::size_t{header_from} * 16 : base_data, n, at, used);
    }
  };
  // The activations of the columns from k on.
  const auto fetch_x = [&](std::uint32_t k, std::uint32_t stage) {
    const std::uint32_t to = base + stage * Size::kStage + Size::kX;
    constexpr int kXPieces = kCols / 8;
#pragma unroll
    for (int i = 0; i < (kRows * kXPieces + kThreads - 1) / kThreads; ++i) {
      const int index = i * kThreads + static_cast<int>(threadIdx.x);
      const int row = index / kXPieces;
      const std::uint32_t at = k + index % kXPieces * 8;
      if (row >= kRows) break;
      const bool used = static_cast<std::uint32_t>(row) < m.rows && at < cols;
      copy_16(to + row * kXStride + index % kXPieces * 16,
              m.x.x + (used ? static_cast<std::size_t>(row) * cols + at : 0), used);
    }
  };

  constexpr std::uint32_t kBatch = kTogether<kStages>;
  constexpr std::uint32_t kAhead = kStages - kBatch;
  // Weights don't depend on the kernels before this one.
#pragma unroll
  for (std::uint32_t i = 0; i < kAhead; ++i) {
    if (begin + i < end) fetch_weights(i);
  }
  wait_for_previous();
  let_next_begin();
#pragma unroll
  for (std::uint32_t i = 0; i < kAhead; ++i) {
    if (begin + i < end) fetch_x((begin + i) % m.cut.units * kCols, i);
    if ((i + 1) % kBatch == 0) copy_commit();
  }

  float sum[2][kTilesN][4] = {};
  std::uint32_t tile = begin / m.cut.units;
  std::uint32_t k = begin - tile * m.cut.units;
  std::uint32_t stage = 0;
  std::uint32_t next_stage = kAhead;
  for (std::uint32_t unit = begin; unit < end; ++unit) {
    if ((unit - begin) % kBatch == 0) {
      copy_wait<kAhead / kBatch - 1>();
      __syncthreads();
#pragma unroll
      for (std::uint32_t i = 0; i < kBatch; ++i) {
        if (unit + kAhead + i < end) {
          fetch_weights(next_stage);
          fetch_x((next_k - 1) * kCols, next_stage);
        }
        if (++next_stage == kStages) next_stage = 0;
      }
      copy_commit();
    }
    const std::uint8_t* const codes = shared + stage * Size::kStage;
    const std::uint8_t* const headers = codes + Size::kHeaders;
    const std::uint8_t* const x = codes + Size::kX;
    const int block_half = static_cast<int>(k & 3);
    std::uint32_t a[2][2][8];
#pragma unroll
    for (int t = 0; t < 2; ++t) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        Unit::weights(codes, headers, side * 32 + t * 16 + h * 8 + r, group, c, block_half,
                      a[t][h]);
      }
    }
#pragma unroll
    for (int n = 0; n < kTilesN; ++n) {
      const std::uint8_t* const from = x + (8 * n + r) * kXStride + group * 128;
      const uint4 b0 = *reinterpret_cast<const uint4*>(from + 2 * Unit::first(c));
      const uint4 b1 = *reinterpret_cast<const uint4*>(from + 2 * Unit::second(c));
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        const auto& low = a[t][0];
        const auto& high = a[t][1];
        mma_f16(sum[t][n], low[0], high[0], low[1], high[1], b0.x, b0.y);
        mma_f16(sum[t][n], low[2], high[2], low[3], high[3], b0.z, b0.w);
        mma_f16(sum[t][n], low[4], high[4], low[5], high[5], b1.x, b1.y);
        mma_f16(sum[t][n], low[6], high[6], low[7], high[7], b1.z, b1.w);
      }
    }
    if (++stage == kStages) stage = 0;
    if (++k != m.cut.units && unit + 1 != end) continue;

    // The part is complete: the groups' halves are added in shared memory.
    float* const reduce = reinterpret_cast<float*>(shared + kStages * Size::kStage) +
                          side * (kTilesN * 8 * 32) + lane;
    if (group == 1) {
#pragma unroll
      for (int i = 0; i < kTilesN * 8; ++i) {
        reduce[i * 32] = sum[i / (4 * kTilesN)][i / 4 % kTilesN][i % 4];
      }
    }
    __syncthreads();
    if (group == 0) {
      float* const to =
          m.parts + static_cast<std::size_t>(blockIdx.x + tile) * kRows * kTile + side * 32 + r;
#pragma unroll
      for (int i = 0; i < kTilesN * 8; ++i) {
        const int t = i / (4 * kTilesN);
        const int n = i / 4 % kTilesN;
        const std::uint32_t row = 8 * n + 2 * c + (i & 1);
        if (row < m.rows) {
          to[row * kTile + t * 16 + (i >> 1 & 1) * 8] = sum[t][n][i % 4] + reduce[i * 32];
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kTilesN * 8; ++i) sum[i / (4 * kTilesN)][i / 4 % kTilesN][i % 4] = 0;
    k = 0;
    ++tile;
  }
  copy_wait<0>();
}

// Shared memory of a block that every device of sm_80 and later has; the full ring needs Hopper's.
constexpr std::size_t kLittleShared = 99 * 1024;
constexpr std::uint32_t kLittleRows = 16;

std::size_t shared_limit() {
  static const std::size_t result = [] {
    int device = 0;
    int bytes = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    return static_cast<std::size_t>(bytes);
  }();
  return result;
}

template <ElementType T, int kRows, int kStages>
void launch(const Arguments& arguments, cudaStream_t stream) {
  using Size = Sizes<T, kRows>;
  constexpr int kBytes = kStages * Size::kStage + Size::kReduce;
  const auto kernel = rows_kernel<T, kRows, kStages>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  launch_chained(kernel, dim3(arguments.cut.blocks), kThreads, kBytes, stream, arguments);
}

template <ElementType T>
void launch_rows(const Arguments& arguments, cudaStream_t stream) {
  if (most_few_rows(shared_limit()) == kLittleRows) {
    static_assert(2 * Sizes<T, kLittleRows>::kStage + Sizes<T, kLittleRows>::kReduce <=
                  kLittleShared);
    launch<T, kLittleRows, 2>(arguments, stream);
  } else if (arguments.rows <= 16) {
    launch<T, 16, Sizes<T, 16>::kStages>(arguments, stream);
  } else if (arguments.rows <= 32) {
    launch<T, 32, Sizes<T, 32>::kStages>(arguments, stream);
  } else {
    launch<T, 64, Sizes<T, 64>::kStages>(arguments, stream);
  }
}

std::uint32_t room_of(std::uint32_t rows) {
  return rows <= 16 ? 16 : (rows <= 32 ? 32 : kMostFewRows);
}

}  // namespace

bool few_rows_supports(ElementType type) {
  return type == ElementType::q8_0 || type == ElementType::q4_k || type == ElementType::q6_k ||
         type == ElementType::q4_0 || type == ElementType::q4_1;
}

std::uint32_t few_rows_blocks(int multiprocessors) {
  return std::min(static_cast<std::uint32_t>(multiprocessors), kMostBlocks);
}

std::uint32_t most_few_rows(std::size_t shared_bytes_per_block) {
  return shared_bytes_per_block >= kFullShared ? kMostFewRows : kLittleRows;
}

std::uint64_t partial_floats(std::uint32_t rows, std::uint32_t outputs) {
  const std::uint64_t tiles = (outputs + kTileOutputs - 1) / kTileOutputs;
  return (kMostBlocks + tiles) * room_of(rows) * kTileOutputs;
}

PartialProduct launch_matmul_rows(const StackedMatrices& w, const HalfRows& x, std::uint32_t rows,
                                  std::uint32_t outputs, std::uint32_t device_blocks, float* parts,
                                  cudaStream_t stream) {
  const DeviceMatrix& matrix = w.part[0];
  const UnitCut cut(outputs, matrix.cols, device_blocks);
  const Arguments arguments{w, x, rows, outputs, cut, parts};
  switch (matrix.type) {
    case ElementType::q8_0:
      launch_rows<ElementType::q8_0>(arguments, stream);
      break;
    case ElementType::q4_k:
      launch_rows<ElementType::q4_k>(arguments, stream);
      break;
    case ElementType::q6_k:
      launch_rows<ElementType::q6_k>(arguments, stream);
      break;
    case ElementType::q4_0:
      launch_rows<ElementType::q4_0>(arguments, stream);
      break;
    default:
      launch_rows<ElementType::q4_1>(arguments, stream);
      break;
  }
  return {parts, x.scale, room_of(rows), cut};
}

}  // namespace edgerunner::cuda
