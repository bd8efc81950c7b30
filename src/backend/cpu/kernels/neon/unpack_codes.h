#pragma once

// Panels of 8-bit codes, from the formats' readers.

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/neon/formats.h"
#include "backend/cpu/kernels/neon/simd.h"
#include "backend/cpu/kernels/neon/unpack_floats.h"
#include "backend/cpu/kernels/panel_kernel.h"

namespace edgerunner::cpu {
namespace {

// How the codes of four rows stand in the eight vectors of a record.

// Vector k has columns 4k to 4k + 3, a row a lane: what the tiles of panel_tile.h want.
struct FoursByRow {
  static void store(const RowCodes (&rows)[4], std::uint8_t* record) {
    for (int h = 0; h < 2; ++h) {
      uint32x4_t in[4];
      uint32x4_t columns[4];
      for (int r = 0; r < 4; ++r) in[r] = vreinterpretq_u32_s8(rows[r].code[h]);
      transpose(in, columns);
      for (int c = 0; c < 4; ++c) {
        vst1q_u8(record + 16 * (4 * h + c), vreinterpretq_u8_u32(columns[c]));
      }
    }
  }
};

// Vectors 2k and 2k + 1 have columns 8k to 8k + 7 of rows 0 and 1, and of rows 2 and 3.
struct EightsByRowPair {
  static void store(const RowCodes (&rows)[4], std::uint8_t* record) {
    for (int h = 0; h < 2; ++h) {
      for (int pair = 0; pair < 2; ++pair) {
        const uint64x2_t a = vreinterpretq_u64_s8(rows[2 * pair].code[h]);
        const uint64x2_t b = vreinterpretq_u64_s8(rows[2 * pair + 1].code[h]);
        std::uint8_t* out = record + 64 * h + 16 * pair;
        vst1q_u8(out, vreinterpretq_u8_u64(vzip1q_u64(a, b)));
        vst1q_u8(out + 32, vreinterpretq_u8_u64(vzip2q_u64(a, b)));
      }
    }
  }
};

template <class Format, class Layout>
void unpack(const PanelSource<Neon>& source, std::uint32_t first, std::uint32_t steps,
            std::uint8_t* out, std::size_t stride, std::byte*) {
  for (std::uint32_t i = first; i < first + steps; ++i) {
    const std::size_t block = std::size_t{i / Format::kSubBlocks} * Format::kBytes;
    const int s = static_cast<int>(i % Format::kSubBlocks);
    RowCodes rows[4];
    float scale[4];
    float second[4];
    std::int32_t pair[4];
    for (int r = 0; r < 4; ++r) {
      if (source.ahead != 0) __builtin_prefetch(source.rows[r] + source.ahead + block);
      Format::read(source.rows[r] + block, s, rows[r]);
      scale[r] = rows[r].scale;
      second[r] = rows[r].second;
      pair[r] = rows[r].pair;
    }
    Layout::store(rows, out);
    vst1q_f32(reinterpret_cast<float*>(out + 8 * 16), vld1q_f32(scale));
    if constexpr (Format::kForm != CodeForm::signed_codes) {
      vst1q_f32(reinterpret_cast<float*>(out + 9 * 16), vld1q_f32(second));
    }
    if constexpr (Format::kForm == CodeForm::half_minima) {
      vst1q_s32(reinterpret_cast<std::int32_t*>(out + 10 * 16), vld1q_s32(pair));
    }
    out += stride;
  }
}

}  // namespace
}  // namespace edgerunner::cpu
