#pragma once

// Unpacking by way of the portable readers, for types and rests that an instruction set has no way
// of its own for.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/codes.h"
#include "backend/cpu/kernels/panel_kernel.h"

namespace edgerunner::cpu {
namespace {

template <class S>
void unpack_codes(const PanelSource<S>& source, std::uint32_t first, std::uint32_t steps,
                  std::uint8_t* out, std::size_t stride, std::byte* temporary) {
  constexpr int kVector = S::kLanes * 4;
  const CodeForm form = code_form(source.type);
  auto* codes = reinterpret_cast<Codes*>(temporary);
  for (int lane = 0; lane < S::kLanes; ++lane) {
    read_codes(source.type, source.rows[lane], first, steps, codes);
    for (std::uint32_t i = 0; i < steps; ++i) {
      std::uint8_t* record = out + i * stride + 4 * lane;
      const Codes& c = codes[i];
      for (int k = 0; k < 8; ++k) __builtin_memcpy(record + k * kVector, c.code + 4 * k, 4);
      __builtin_memcpy(record + 8 * kVector, &c.scale[0], 4);
      if (form == CodeForm::half_scales) {
        __builtin_memcpy(record + 9 * kVector, &c.scale[1], 4);
      } else if (form != CodeForm::signed_codes) {
        __builtin_memcpy(record + 9 * kVector, &c.minimum, 4);
      }
      if (form == CodeForm::half_minima) {
        __builtin_memcpy(record + 10 * kVector, c.minimum_code, 4);
      }
    }
  }
}

}  // namespace
}  // namespace edgerunner::cpu
