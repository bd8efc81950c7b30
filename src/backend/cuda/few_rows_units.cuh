#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "backend/cuda/few_rows.h"
#include "backend/cuda/mma.cuh"
#include "backend/cuda/tensor_map.h"
#include "backend/cuda/unpack.cuh"

// What products of a few rows work on: units of kTileOutputs outputs by kUnitCols columns, and how
// a lane makes the tensor cores' operands from one in shared memory. It reads what it needs as
// neighbouring bytes: inside a product the order of the columns is free, so the activations stand
// in ColumnOrder::operand, in which the first pairs of the lanes' columns follow each other.

namespace edgerunner::cuda {

constexpr int kTile = static_cast<int>(kTileOutputs);
constexpr int kCols = static_cast<int>(kUnitCols);

__device__ inline __half2 as_half2(std::uint32_t x) { return *reinterpret_cast<__half2*>(&x); }
__device__ inline std::uint32_t as_word(__half2 x) { return *reinterpret_cast<std::uint32_t*>(&x); }

// 1024 + b for two neighbouring bytes b of a word, the lower or the higher ones: 0x6400 + b as f16.
__device__ inline __half2 widened_pair(std::uint32_t bytes, int which) {
  return as_half2(__byte_perm(bytes, 0x64646464U, which == 0 ? 0x4140 : 0x4342));
}
// Four codes in the bytes of `codes`, which were biased by `bias` - 1024.
__device__ inline void widen(std::uint32_t codes, __half2 bias, __half2& low, __half2& high) {
  low = __hsub2(widened_pair(codes, 0), bias);
  high = __hsub2(widened_pair(codes, 1), bias);
}

// What a type's unit looks like in shared memory, and how a lane makes its sixteen weights of a row
// from it: eight neighbouring ones from column 8 * c of each half of a group of 64, c = lane & 3.
// A row's codes come in planes of so many pieces of 16 bytes, which stand as swizzled_place() says;
// code_offset(): where a plane's codes of the unit begin in a segment of n blocks, the unit at
// column `at` of it. header() copies what belongs to the unit's first `blocks` times 32 columns,
// and zeros for the rest: codes past a row's end are whatever follows there, and count for nothing.
template <ElementType T>
struct UnitOf;

// A unit's planes after each other, then its headers, a row's beside each other.
template <ElementType T>
struct UnitPlaces {
  static constexpr int plane(int p) {
    int at = 0;
    for (int i = 0; i < p; ++i) at += kTile * UnitOf<T>::pieces(i) * 16;
    return at;
  }
  static constexpr int kHeaders = plane(UnitOf<T>::kPlanes);
  static constexpr int kBytes = kHeaders + kTile * UnitOf<T>::kHeaderBytes;
};

// Eight bytes of a row of a plane.
template <int kPieces>
__device__ inline uint2 eight_codes(const std::uint8_t* plane, int row, int at) {
  const std::uint32_t place = swizzled_place<kPieces>(row, at / 16) + at % 16;
  return *reinterpret_cast<const uint2*>(plane + place);
}

template <>
struct UnitOf<ElementType::q8_0> {
  static constexpr int kHeaderBytes = 8;
  static constexpr int kPlanes = 1;
  static constexpr int pieces(int) { return 8; }
  __device__ static int row_of(int r) { return (r & 3) << 1 | r >> 2; }
  __device__ static int code_offset(int, int, int at) { return at; }
  __device__ static void header(std::uint32_t to, const std::uint8_t* seg, int n, int at,
                                int blocks) {
    copy_part<8>(to, seg + 32 * n + at / 16, 2 * blocks);
  }
  __device__ static void weights(const std::uint8_t* codes, const std::uint8_t* headers, int row,
                                 int group, int c, int, std::uint32_t (&out)[8]) {
    const uint2 first = eight_codes<8>(codes, row, 64 * group + 8 * c);
    const uint2 second = eight_codes<8>(codes, row, 64 * group + 32 + 8 * c);
    const __half2 scales =
        *reinterpret_cast<const __half2*>(headers + row * kHeaderBytes + 4 * group);
    const __half2 bias = __float2half2_rn(1024.0F + 128.0F);
    const std::uint32_t words[4] = {first.x, first.y, second.x, second.y};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const __half2 scale = i < 2 ? __low2half2(scales) : __high2half2(scales);
      __half2 low;
      __half2 high;
      widen(words[i] ^ 0x80808080U, bias, low, high);
      out[2 * i] = as_word(__hmul2(low, scale));
      out[2 * i + 1] = as_word(__hmul2(high, scale));
    }
  }
};

// scale * code + offset for codes of 4 bits, a byte each; the first two words and the other two
// have their own scales.
__device__ inline void scale_nibbles(const std::uint32_t (&words)[4], const __half2 (&scale)[2],
                                     const __half2 (&offset)[2], std::uint32_t (&out)[8]) {
  const __half2 bias = __float2half2_rn(1024.0F);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    __half2 a;
    __half2 b;
    widen(words[i], bias, a, b);
    out[2 * i] = as_word(__hfma2(a, scale[i / 2], offset[i / 2]));
    out[2 * i + 1] = as_word(__hfma2(b, scale[i / 2], offset[i / 2]));
  }
}

constexpr std::uint32_t kNibbles = 0x0F0F0F0FU;

// Codes of 4 bits: 64 bytes a row.
struct NibbleUnit {
  static constexpr int kPlanes = 1;
  static constexpr int pieces(int) { return 4; }
  __device__ static int row_of(int r) { return (r & 1) | (r & 2) << 1 | r >> 2 << 1; }
  __device__ static int code_offset(int, int, int at) { return at / 2; }
};

template <bool kOffset>
struct Unit4 : NibbleUnit {  // q4_0, q4_1: blocks of 32, so a half of a group is a block
  static constexpr int kHeaderBytes = kOffset ? 16 : 8;
  __device__ static void header(std::uint32_t to, const std::uint8_t* seg, int n, int at,
                                int blocks) {
    if constexpr (kOffset) {
      copy_part<16>(to, seg + 16 * n + at / 8, 4 * blocks);
    } else {
      copy_part<8>(to, seg + 16 * n + at / 16, 2 * blocks);
    }
  }
  __device__ static void weights(const std::uint8_t* codes, const std::uint8_t* headers, int row,
                                 int group, int c, int, std::uint32_t (&out)[8]) {
    const uint2 first = eight_codes<4>(codes, row, 32 * group + 8 * (c & 1));
    const uint2 second = eight_codes<4>(codes, row, 32 * group + 16 + 8 * (c & 1));
    const int shift = 4 * (c >> 1);
    const std::uint32_t words[4] = {(first.x >> shift) & kNibbles, (first.y >> shift) & kNibbles,
                                    (second.x >> shift) & kNibbles, (second.y >> shift) & kNibbles};
    if constexpr (kOffset) {
      const uint2 both = *reinterpret_cast<const uint2*>(headers + row * kHeaderBytes + 8 * group);
      const __half2 a = as_half2(both.x);
      const __half2 b = as_half2(both.y);
      scale_nibbles(words, {__low2half2(a), __low2half2(b)}, {__high2half2(a), __high2half2(b)},
                    out);
    } else {
      const __half2 scales =
          *reinterpret_cast<const __half2*>(headers + row * kHeaderBytes + 4 * group);
      const __half2 offsets = __hmul2(scales, __float2half2_rn(-8.0F));
      scale_nibbles(words, {__low2half2(scales), __high2half2(scales)},
                    {__low2half2(offsets), __high2half2(offsets)}, out);
    }
  }
};
template <>
struct UnitOf<ElementType::q4_0> : Unit4<false> {};
template <>
struct UnitOf<ElementType::q4_1> : Unit4<true> {};

template <>
struct UnitOf<ElementType::q4_k> : NibbleUnit {
  static constexpr int kHeaderBytes = 16;  // four scales, four minima, d and dmin; four unused
  __device__ static void header(std::uint32_t to, const std::uint8_t* seg, int n, int at,
                                int blocks) {
    copy_part<8>(to, seg + 128 * n + at / 128 * 8, 2 * blocks);
    copy_part<4>(to + 8, seg + 144 * n + at / 256 * 4, blocks);
  }
  __device__ static void weights(const std::uint8_t* codes, const std::uint8_t* headers, int row,
                                 int group, int c, int, std::uint32_t (&out)[8]) {
    const uint2 q = eight_codes<4>(codes, row, 32 * group + 8 * c);
    const std::uint32_t words[4] = {q.x & kNibbles, q.y & kNibbles, (q.x >> 4) & kNibbles,
                                    (q.y >> 4) & kNibbles};
    const uint4 h = *reinterpret_cast<const uint4*>(headers + row * kHeaderBytes);
    // The group's two sub-blocks have neighbouring bytes of scales and minima. A product of f16
    // is rounded once, so it is what it would be by way of f32.
    const __half2 dm = as_half2(h.z);
    const __half2 bias = __float2half2_rn(1024.0F);
    const auto scaled_by = [&](__half2 by, std::uint32_t bytes) {
      return __hmul2(by, __hsub2(widened_pair(bytes, group), bias));
    };
    const __half2 scales = scaled_by(__low2half2(dm), h.x);
    const __half2 offsets = scaled_by(__hneg2(__high2half2(dm)), h.y);
    scale_nibbles(words, {__low2half2(scales), __high2half2(scales)},
                  {__low2half2(offsets), __high2half2(offsets)}, out);
  }
};

template <>
struct UnitOf<ElementType::q6_k> {
  static constexpr int kHeaderBytes = 16;
  static constexpr int kPlanes = 2;  // 64 bytes of low nibbles, 32 of high pairs
  static constexpr int pieces(int plane) { return plane == 0 ? 4 : 2; }
  __device__ static int row_of(int r) { return NibbleUnit::row_of(r); }
  __device__ static int code_offset(int plane, int n, int at) {
    return plane == 0 ? at / 2 : 128 * n + at / 4;
  }
  __device__ static void header(std::uint32_t to, const std::uint8_t* seg, int n, int at,
                                int blocks) {
    copy_part<8>(to, seg + 192 * n + at / 16, 2 * blocks);
    copy_part<4>(to + 8, seg + ((208 * n + at / 256 * 2) & ~3), blocks);
  }
  __device__ static void weights(const std::uint8_t* codes, const std::uint8_t* headers, int row,
                                 int group, int c, int block_half, std::uint32_t (&out)[8]) {
    // block_half: bit 0 says which half of a block the unit is, bit 1 which of two blocks' scales.
    const uint2 first = eight_codes<4>(codes, row, 8 * c);
    const uint2 second = eight_codes<4>(codes, row, 32 + 8 * c);
    const uint2 high = eight_codes<2>(codes + kTile * 64, row, 8 * c);
    const std::uint8_t* const header = headers + row * kHeaderBytes;
    const __half d = *reinterpret_cast<const __half*>(header + 8 + (block_half & 2));
    // Of 16 columns each: this lane's are the first or the second and the third or the fourth.
    const std::uint32_t scale_bytes =
        (reinterpret_cast<const std::uint32_t*>(header)[group] ^ 0x80808080U) >> (8 * (c >> 1));
    const __half2 scales =
        __hmul2(__half2half2(d), __hsub2(as_half2(__byte_perm(scale_bytes, 0x64646464U, 0x4240)),
                                         __float2half2_rn(1024.0F + 128.0F)));
    const __half2 bias = __float2half2_rn(1024.0F + 32.0F);
    const std::uint32_t lows[4] = {first.x, first.y, second.x, second.y};
    const std::uint32_t highs[2] = {high.x, high.y};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const __half2 scale = i < 2 ? __low2half2(scales) : __high2half2(scales);
      const std::uint32_t word = ((lows[i] >> (4 * group)) & kNibbles) |
                                 (((highs[i & 1] >> (2 * (2 * group + i / 2))) & 0x03030303U) << 4);
      __half2 a;
      __half2 b;
      widen(word, bias, a, b);
      out[2 * i] = as_word(__hmul2(a, scale));
      out[2 * i + 1] = as_word(__hmul2(b, scale));
    }
  }
};

// Where a line of units stands: the tile, and the unit's place in a row of weights.
template <ElementType T>
class UnitWalk {
 public:
  __device__ UnitWalk(const UnitCut& cut, std::uint32_t cols, std::uint32_t begin)
      : units_(cut.units), cols_(cols), tile_(begin / cut.units), k_(begin - tile_ * cut.units) {}

  __device__ std::uint32_t tile() const { return tile_; }
  __device__ std::uint32_t column() const { return k_ * kCols; }
  // In bytes of a row, where the segment begins; its elements, its blocks, and the unit's column
  // in it.
  __device__ std::uint32_t segment() const { return column() / kSegment * segment_bytes(kLayout); }
  __device__ int elements() const {
    const std::uint32_t rest = cols_ - column() / kSegment * kSegment;
    return static_cast<int>(rest < kSegment ? rest : kSegment);
  }
  __device__ int blocks() const { return elements() / static_cast<int>(kLayout.block_length); }
  // Times 32 columns that the unit has.
  __device__ int present() const { return min(elements() - at(), kCols) / 32; }
  __device__ int at() const { return static_cast<int>(column() % kSegment); }
  __device__ void advance() {
    if (++k_ == units_) {
      k_ = 0;
      ++tile_;
    }
  }

 private:
  static constexpr Layout kLayout = layout(T);
  static constexpr std::uint32_t kSegment = kLayout.segment_elements;
  static_assert(kSegment % kCols == 0);
  std::uint32_t units_;
  std::uint32_t cols_;
  std::uint32_t tile_;
  std::uint32_t k_;  // in units
};

}  // namespace edgerunner::cuda
