#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "backend/cuda/segment.h"

// The value of one element of a segment, bit-exact with tensor/dequantize.h: one rounding a product
// and one a sum. `n` is the number of blocks in the segment, i the element's index in it. The
// codes' layout inside a block stands in tensor/blocks.h.

namespace edgerunner::cuda {

__device__ inline float half_at(const std::uint8_t* p) {
  return __half2float(*reinterpret_cast<const __half*>(p));
}
__device__ inline float scaled(float scale, int code) {
  return __fmul_rn(scale, static_cast<float>(code));
}
__device__ inline float offset_scaled(float scale, int code, float offset) {
  return __fadd_rn(scaled(scale, code), offset);
}
__device__ inline int nibble_of_32(const std::uint8_t* qs, int j) {
  return (qs[j & 15] >> (4 * (j >> 4))) & 15;
}

// The values that 4-bit codes stand for, packed: one table of bytes each.
__device__ inline int iq4_value(int code) {
  constexpr std::uint32_t kTable[4] = {0xBFAD9881U, 0xF6EADDCFU, 0x26190D01U, 0x71594535U};
  const std::uint32_t word =
      code < 8 ? (code < 4 ? kTable[0] : kTable[1]) : (code < 12 ? kTable[2] : kTable[3]);
  return static_cast<std::int8_t>(word >> (8 * (code & 3)));
}
__device__ inline int mxfp4_value(int code) {
  constexpr std::uint64_t kTable = 0x0C08060403020100ULL;
  const int magnitude = static_cast<int>((kTable >> (8 * (code & 7))) & 0xFF);
  return code & 8 ? -magnitude : magnitude;
}
__device__ inline float mxfp4_half_scale(std::uint32_t e) {
  if (e == 255) return __uint_as_float(0x7FC00000U);
  return __uint_as_float(e < 2 ? 0x00200000U << e : (e - 1U) << 23);
}
// Sub-block j's scale and minimum of Q4_K and Q5_K, as the file packs them; and where they stand
// once unpacked.
__device__ inline int k_scale(const std::uint8_t* s, int j) {
  return j < 4 ? s[j] & 63 : (s[j + 4] & 15) | ((s[j - 4] >> 6) << 4);
}
__device__ inline int k_minimum(const std::uint8_t* s, int j) {
  return j < 4 ? s[j + 4] & 63 : (s[j + 4] >> 4) | ((s[j] >> 6) << 4);
}
__device__ inline int k_scale_at(int j) { return 8 * (j >> 2) + (j & 3); }
__device__ inline int k_minimum_at(int j) { return k_scale_at(j) + 4; }

template <ElementType T>
__device__ inline float value(const std::uint8_t* seg, int n, int i) {
  if constexpr (T == ElementType::f32) {
    return reinterpret_cast<const float*>(seg)[i];
  } else if constexpr (T == ElementType::f16) {
    return half_at(seg + 2 * i);
  } else if constexpr (T == ElementType::bf16) {
    return __uint_as_float(
        static_cast<std::uint32_t>(reinterpret_cast<const std::uint16_t*>(seg)[i]) << 16);
  } else if constexpr (layout(T).block_length == 32) {
    const int b = i >> 5;
    const int j = i & 31;
    if constexpr (T == ElementType::q4_0) {
      return scaled(half_at(seg + 16 * n + 2 * b), nibble_of_32(seg + 16 * b, j) - 8);
    } else if constexpr (T == ElementType::iq4_nl) {
      return scaled(half_at(seg + 16 * n + 2 * b), iq4_value(nibble_of_32(seg + 16 * b, j)));
    } else if constexpr (T == ElementType::q4_1) {
      const std::uint8_t* const dm = seg + 16 * n + 4 * b;
      return offset_scaled(half_at(dm), nibble_of_32(seg + 16 * b, j), half_at(dm + 2));
    } else if constexpr (T == ElementType::q5_0 || T == ElementType::q5_1) {
      const int bit = (seg[16 * n + 4 * b + (j >> 3)] >> (j & 7)) & 1;
      const int code = nibble_of_32(seg + 16 * b, j) | (bit << 4);
      if constexpr (T == ElementType::q5_0) {
        return scaled(half_at(seg + 20 * n + 2 * b), code - 16);
      } else {
        const std::uint8_t* const dm = seg + 20 * n + 4 * b;
        return offset_scaled(half_at(dm), code, half_at(dm + 2));
      }
    } else if constexpr (T == ElementType::q8_0) {
      return scaled(half_at(seg + 32 * n + 2 * b), reinterpret_cast<const std::int8_t*>(seg)[i]);
    } else {
      static_assert(T == ElementType::mxfp4);
      return scaled(mxfp4_half_scale(seg[16 * n + b]), mxfp4_value(nibble_of_32(seg + 16 * b, j)));
    }
  } else {
    static_assert(layout(T).block_length == 256);
    const int b = i >> 8;
    const int j = i & 255;
    if constexpr (T == ElementType::q2_k || T == ElementType::q3_k) {
      const int low = (seg[64 * b + 32 * (j >> 7) + (j & 31)] >> (2 * ((j & 127) >> 5))) & 3;
      if constexpr (T == ElementType::q2_k) {
        const int packed = seg[64 * n + 16 * b + (j >> 4)];
        const std::uint8_t* const dm = seg + 80 * n + 4 * b;
        return offset_scaled(scaled(half_at(dm), packed & 15), low,
                             -scaled(half_at(dm + 2), packed >> 4));
      } else {
        const int high = (seg[64 * n + 32 * b + (j & 31)] >> (j >> 5)) & 1;
        const std::uint8_t* const s = seg + 96 * n + 12 * b;
        const int g = j >> 4;
        const int scale =
            ((s[g & 7] >> (4 * (g >> 3))) & 15) | (((s[8 + (g & 3)] >> (2 * (g >> 2))) & 3) << 4);
        return scaled(scaled(half_at(seg + 108 * n + 2 * b), scale - 32), (low | (high << 2)) - 4);
      }
    } else if constexpr (T == ElementType::q4_k || T == ElementType::q5_k) {
      int code = (seg[128 * b + 32 * (j >> 6) + (j & 31)] >> (4 * ((j >> 5) & 1))) & 15;
      constexpr int kCodeBytes = T == ElementType::q5_k ? 160 : 128;
      if constexpr (T == ElementType::q5_k) {
        code |= ((seg[128 * n + 32 * b + (j & 31)] >> (j >> 5)) & 1) << 4;
      }
      const std::uint8_t* const scales = seg + kCodeBytes * n + 16 * b;
      const std::uint8_t* const dm = seg + (kCodeBytes + 16) * n + 4 * b;
      return offset_scaled(scaled(half_at(dm), scales[k_scale_at(j >> 5)]), code,
                           -scaled(half_at(dm + 2), scales[k_minimum_at(j >> 5)]));
    } else if constexpr (T == ElementType::q6_k) {
      const int half = j >> 7;
      const int k = j & 127;
      const int low = (seg[128 * b + 64 * half + (k & 63)] >> (4 * (k >> 6))) & 15;
      const int high = (seg[128 * n + 64 * b + 32 * half + (k & 31)] >> (2 * (k >> 5))) & 3;
      const int scale = static_cast<std::int8_t>(seg[192 * n + 16 * b + (j >> 4)]);
      return scaled(scaled(half_at(seg + 208 * n + 2 * b), scale), (low | (high << 4)) - 32);
    } else {
      static_assert(T == ElementType::iq4_xs);
      const std::uint8_t* const h = seg + 128 * n + 8 * b;  // d, scales_h[2], scales_l[4]
      const int g = j >> 5;
      const int scale = ((h[4 + (g >> 1)] >> (4 * (g & 1))) & 15) |
                        (((h[2 + (g >> 2)] >> (2 * (g & 3))) & 3) << 4);
      const int code = (seg[128 * b + 16 * g + (j & 15)] >> (4 * ((j >> 4) & 1))) & 15;
      return scaled(scaled(half_at(h), scale - 32), iq4_value(code));
    }
  }
}

// The same for element i of a row.
template <ElementType T>
__device__ inline float row_value(const std::uint8_t* row, int cols, int i) {
  constexpr Layout kLayout = layout(T);
  constexpr int kElements = static_cast<int>(kLayout.segment_elements);
  const int segment = i / kElements;
  const int rest = cols - segment * kElements;
  const int n = (rest < kElements ? rest : kElements) / static_cast<int>(kLayout.block_length);
  return value<T>(row + static_cast<std::size_t>(segment) * segment_bytes(kLayout), n,
                  i - segment * kElements);
}

// Calls visit(std::integral_constant<ElementType, type>) for a type that kernels exist for.
template <ElementType T>
struct TypeTag {
  static constexpr ElementType kType = T;
};
template <typename Visit>
void visit_type(ElementType type, Visit&& visit) {
  switch (type) {
    case ElementType::f32:
      return visit(TypeTag<ElementType::f32>{});
    case ElementType::f16:
      return visit(TypeTag<ElementType::f16>{});
    case ElementType::bf16:
      return visit(TypeTag<ElementType::bf16>{});
    case ElementType::q4_0:
      return visit(TypeTag<ElementType::q4_0>{});
    case ElementType::q4_1:
      return visit(TypeTag<ElementType::q4_1>{});
    case ElementType::q5_0:
      return visit(TypeTag<ElementType::q5_0>{});
    case ElementType::q5_1:
      return visit(TypeTag<ElementType::q5_1>{});
    case ElementType::q8_0:
      return visit(TypeTag<ElementType::q8_0>{});
    case ElementType::q2_k:
      return visit(TypeTag<ElementType::q2_k>{});
    case ElementType::q3_k:
      return visit(TypeTag<ElementType::q3_k>{});
    case ElementType::q4_k:
      return visit(TypeTag<ElementType::q4_k>{});
    case ElementType::q5_k:
      return visit(TypeTag<ElementType::q5_k>{});
    case ElementType::q6_k:
      return visit(TypeTag<ElementType::q6_k>{});
    case ElementType::iq4_nl:
      return visit(TypeTag<ElementType::iq4_nl>{});
    case ElementType::iq4_xs:
      return visit(TypeTag<ElementType::iq4_xs>{});
    case ElementType::mxfp4:
      return visit(TypeTag<ElementType::mxfp4>{});
    default:
      return;
  }
}

}  // namespace edgerunner::cuda
