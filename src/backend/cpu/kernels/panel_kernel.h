#pragma once

// What a panel product is made of for one type of weights: a way to unpack a chunk, and the tiles.
// Written once over a set of vector operations S, included by the translation unit of each
// instruction set.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/instruction_sets.h"
#include "backend/cpu/kernels/panel_tile.h"

namespace edgerunner::cpu {
namespace {

// The weight rows of one panel.
template <class S>
struct PanelSource {
  ElementType type;
  std::uint32_t cols;
  const std::uint8_t* rows[S::kLanes];  // where each begins; the last again past the matrix's end
  std::size_t ahead;  // bytes from a row to the one of the next panel, to be prefetched; 0: none
};

// Fetches the next panel's share of bytes [offset, offset + size) of all rows: as many bytes, but
// in one piece, so that a panel's rows together are read from memory from end to end.
template <class S>
inline void prefetch_share(const PanelSource<S>& source, std::size_t offset, std::size_t size) {
  if (source.ahead == 0) return;
  const std::uint8_t* begin = source.rows[0] + source.ahead + offset * S::kLanes;
  for (std::size_t line = 0; line < size * S::kLanes; line += 64) {
    __builtin_prefetch(begin + line, 0, 2);
  }
}

// Unpacks steps [first, first + steps) of the columns; records are `stride` bytes apart.
// `temporary` is the Scratch's.
template <class S>
using Unpack = void (*)(const PanelSource<S>& source, std::uint32_t first, std::uint32_t steps,
                        std::uint8_t* out, std::size_t stride, std::byte* temporary);

using Tile = void (*)(const std::uint8_t* panel, std::uint32_t steps, const std::byte* const* x,
                      float* const* sums);

template <class S>
struct PanelKernel {
  std::uint32_t step_columns;
  std::size_t step_activation_bytes;
  std::size_t record_bytes;
  Unpack<S> unpack;
  int max_tokens;
  Tile tiles[S::kPanels][S::kTokens];  // [panels - 1][tokens - 1]
};

// Fills tiles[p][t] with `make`'s tile for p + 1 panels and t + 1 tokens.
template <class S, class Make, int kP = 1, int kT = 1>
constexpr void fill_tiles(PanelKernel<S>& kernel, Make make) {
  kernel.tiles[kP - 1][kT - 1] = make.template tile<kP, kT>();
  if constexpr (kT < Make::kMaxTokens) {
    fill_tiles<S, Make, kP, kT + 1>(kernel, make);
  } else if constexpr (kP < S::kPanels) {
    fill_tiles<S, Make, kP + 1, 1>(kernel, make);
  }
}

template <class S>
struct MakeF32 {
  static constexpr int kMaxTokens = S::kTokens;
  template <int kP, int kT>
  constexpr Tile tile() const {
    return tile_f32<S, kP, kT>;
  }
};

template <class S, CodeForm kForm>
struct MakeQ8 {
  static constexpr int kMaxTokens = kForm == CodeForm::half_scales ? S::kTokensHalves : S::kTokens;
  template <int kP, int kT>
  constexpr Tile tile() const {
    return tile_q8<S, kForm, kP, kT>;
  }
};

template <class S>
constexpr PanelKernel<S> f32_kernel(Unpack<S> unpack) {
  PanelKernel<S> kernel{1, 4, S::kLanes * 4, unpack, MakeF32<S>::kMaxTokens, {}};
  fill_tiles(kernel, MakeF32<S>{});
  return kernel;
}

template <class S, CodeForm kForm, class Make = MakeQ8<S, kForm>>
constexpr PanelKernel<S> q8_kernel(Unpack<S> unpack) {
  PanelKernel<S> kernel{
      kQ8Length, sizeof(Q8Block),  q8_record_vectors(kForm) * S::kLanes * std::size_t{4},
      unpack,    Make::kMaxTokens, {}};
  fill_tiles(kernel, Make{});
  return kernel;
}

}  // namespace
}  // namespace edgerunner::cpu
