#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "backend/cuda/few_rows.h"
#include "backend/cuda/mma.cuh"
#include "backend/cuda/unpack.cuh"

// What products of a few rows work on: units of kTileOutputs outputs by kUnitCols columns, and how
// a lane makes the tensor cores' operands from one in shared memory. It reads what it needs as
// neighbouring bytes: inside a product the order of the columns is free, so it is the weights' own,
// and the activations follow it.

namespace edgerunner::cuda {

constexpr int kTile = static_cast<int>(kTileOutputs);
constexpr int kCols = static_cast<int>(kUnitCols);

__device__ inline __half2 as_half2(std::uint32_t x) { return *reinterpret_cast<__half2*>(&x); }
__device__ inline std::uint32_t as_word(__half2 x) { return *reinterpret_cast<std::uint32_t*>(&x); }

// Four codes in the bytes of `codes`, below 128 each or biased by 128: 0x6400 + n is 1024 + n in
// f16, exactly.
__device__ inline void widen(std::uint32_t codes, __half2 bias, __half2& low, __half2& high) {
  low = __hsub2(as_half2(__byte_perm(codes, 0x64646464U, 0x4140)), bias);
  high = __hsub2(as_half2(__byte_perm(codes, 0x64646464U, 0x4342)), bias);
}

// What a type's unit looks like in shared memory, and how a lane makes its sixteen weights of a row
// from it: eight neighbouring ones at column first(c), and eight at second(c), of the 64 columns
// of its group; c is lane & 3. A row's codes come in planes of so many pieces of 16 bytes that lie
// together; code_offset(): where a plane's codes of the unit begin in a segment of n blocks, the
// unit at column `at` of it.
template <ElementType T>
struct UnitOf;

template <>
struct UnitOf<ElementType::q8_0> {
  static constexpr int kCodeBytes = 128;  // of a row
  static constexpr int kHeaderBytes = 8;
  static constexpr int kPlanes = 1;
  static constexpr int pieces(int) { return 8; }
  __device__ static std::uint32_t place(int row, int piece) {
    return static_cast<std::uint32_t>(row * 128 + ((piece ^ ((row & 1) << 2)) << 4));
  }
  __device__ static int code_offset(int, int, int at) { return at; }
  __device__ static void header(std::uint32_t to, const std::uint8_t* seg, int n, int at,
                                bool used) {
    copy_8(to, seg + 32 * n + at / 16, used);
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
  static constexpr int kPlanes = 1;
  static constexpr int pieces(int) { return 4; }
  __device__ static int code_offset(int, int, int at) { return at / 2; }
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
  __device__ static void header(std::uint32_t to, const std::uint8_t* seg, int n, int at,
                                bool used) {
    if constexpr (kOffset) {
      copy_16(to, seg + 16 * n + at / 8, used);
    } else {
      copy_8(to, seg + 16 * n + at / 16, used);
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
  __device__ static void header(std::uint32_t to, const std::uint8_t* seg, int n, int at,
                                bool used) {
    copy_8(to, seg + 128 * n + at / 128 * 8, used);
    copy_4(to + 8, seg + 144 * n + at / 256 * 4, used);
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
  static constexpr int kPlanes = 2;
  static constexpr int pieces(int plane) { return plane == 0 ? 4 : 2; }
  __device__ static std::uint32_t place(int row, int piece) {
    return static_cast<std::uint32_t>(piece < 4 ? row * 64 + piece * 16
                                                : kTile * 64 + row * 32 + (piece - 4) * 16);
  }
  __device__ static int code_offset(int plane, int n, int at) {
    return plane == 0 ? at / 2 : 128 * n + at / 4;
  }
  __device__ static void header(std::uint32_t to, const std::uint8_t* seg, int n, int at,
                                bool used) {
    copy_8(to, seg + 192 * n + at / 16, used);
    copy_4(to + 8, seg + ((208 * n + at / 256 * 2) & ~3), used);
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

}  // namespace edgerunner::cuda
