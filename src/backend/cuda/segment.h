#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "tensor/element_type.h"

namespace edgerunner::cuda {

// How a row of weights lies in device memory. A row is cut into segments of kElements<type>
// elements (the last may be shorter); a segment holds the same bits as the file's blocks, with the
// fields of the blocks gathered into arrays, one after another in the order of Layout::fields:
//     Q8_0, n blocks: n * 32 bytes of codes, then n * 2 bytes of scales.
// The 6-bit scales and minima of Q4_K and Q5_K become bytes, since unpacking them would take as
// long as multiplying the codes; of each half block four scales, then four minima. So codes are
// read 16 bytes at a time, neighbouring lanes reading neighbouring bytes, and a segment is one
// contiguous piece that a bulk copy brings into shared memory. Segments and rows begin at multiples
// of 16 bytes.
struct Field {
  std::uint8_t offset = 0;  // in the file's block
  std::uint8_t size = 0;    // in device memory
  bool packed_scales = false;
};

struct Layout {
  std::uint32_t block_length = 0;      // elements
  std::uint32_t block_bytes = 0;       // in the file
  std::uint32_t segment_elements = 0;  // a multiple of block_length; about 2 KiB
  std::uint32_t field_count = 0;
  std::array<Field, 4> fields{};
};

constexpr Layout layout(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return {1, 4, 512, 1, {{{0, 4}}}};
    case ElementType::f16:
    case ElementType::bf16:
      return {1, 2, 1024, 1, {{{0, 2}}}};
    case ElementType::q4_0:  // qs, d
    case ElementType::iq4_nl:
      return {32, 18, 4096, 2, {{{2, 16}, {0, 2}}}};
    case ElementType::q4_1:  // qs, (d, m)
      return {32, 20, 4096, 2, {{{4, 16}, {0, 4}}}};
    case ElementType::q5_0:  // qs, qh, d
      return {32, 22, 2048, 3, {{{6, 16}, {2, 4}, {0, 2}}}};
    case ElementType::q5_1:  // qs, qh, (d, m)
      return {32, 24, 2048, 3, {{{8, 16}, {4, 4}, {0, 4}}}};
    case ElementType::q8_0:  // qs, d
      return {32, 34, 2048, 2, {{{2, 32}, {0, 2}}}};
    case ElementType::mxfp4:  // qs, e
      return {32, 17, 4096, 2, {{{1, 16}, {0, 1}}}};
    case ElementType::q2_k:  // qs, scales, (d, dmin)
      return {256, 84, 4096, 3, {{{16, 64}, {0, 16}, {80, 4}}}};
    case ElementType::q3_k:  // qs, hmask, scales, d
      return {256, 110, 4096, 4, {{{32, 64}, {0, 32}, {96, 12}, {108, 2}}}};
    case ElementType::q4_k:  // qs, scales, (d, dmin)
      return {256, 144, 4096, 3, {{{16, 128}, {4, 16, true}, {0, 4}}}};
    case ElementType::q5_k:  // qs, qh, scales, (d, dmin)
      return {256, 176, 2048, 4, {{{48, 128}, {16, 32}, {4, 16, true}, {0, 4}}}};
    case ElementType::q6_k:  // ql, qh, scales, d
      return {256, 210, 2048, 4, {{{0, 128}, {128, 64}, {192, 16}, {208, 2}}}};
    case ElementType::iq4_xs:  // qs, (d, scales_h, scales_l)
      return {256, 136, 4096, 2, {{{8, 128}, {0, 8}}}};
    default:
      return {};
  }
}

constexpr std::uint32_t round_up_16(std::uint32_t bytes) { return (bytes + 15U) & ~15U; }

// Bytes of a block's fields in device memory, of a whole segment, and of a row of `cols` elements.
constexpr std::uint32_t device_block_bytes(const Layout& l) {
  std::uint32_t bytes = 0;
  for (const Field& field : l.fields) bytes += field.size;
  return bytes;
}
constexpr std::uint32_t segment_bytes(const Layout& l) {
  return l.segment_elements / l.block_length * device_block_bytes(l);
}
constexpr std::uint32_t device_row_bytes(const Layout& l, std::uint32_t cols) {
  const std::uint32_t rest = cols % l.segment_elements;
  return cols / l.segment_elements * segment_bytes(l) +
         round_up_16(rest / l.block_length * device_block_bytes(l));
}

// A weight matrix in device memory, y[rows] = W[rows, cols] x[cols]. Passed to kernels by value.
struct DeviceMatrix {
  const std::uint8_t* data = nullptr;
  std::uint32_t rows = 0;
  std::uint32_t cols = 0;
  std::uint32_t row_bytes = 0;
  ElementType type = ElementType::f32;
  std::uint32_t segment_elements = 0;
};

}  // namespace edgerunner::cuda
