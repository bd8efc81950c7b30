#pragma once

// What becomes of sums: bias, epilogue, and the gate that an epilogue may take from a product of
// its own. Written once over a set of vector operations S, included by the translation unit of each
// instruction set.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/instruction_sets.h"
#include "backend/cpu/kernels/scratch.h"
#include "backend/cpu/kernels/silu.h"

namespace edgerunner::cpu {
namespace {

// So many rows of activations ahead outputs are fetched: the lines of neighbouring rows are far
// from each other, so that nothing but this hides the latency of the cache that they are in.
inline constexpr std::uint32_t kOutputsAhead = 16;

// The sums of `lanes` outputs of every token as they stand in scratch, [tokens, lanes].
struct PanelSums {
  const float* blocks;
  const float* terms;  // null where there are none
  std::uint32_t lanes;

  template <class S>
  typename S::F load(const float* bias, std::uint32_t t, std::uint32_t lane,
                     std::uint32_t count) const {
    const std::size_t at = std::size_t{t} * lanes + lane;
    typename S::F s = S::load(blocks + at);
    if (terms != nullptr) s = S::add(s, S::load(terms + at));
    if (bias != nullptr) s = S::add(s, S::load_first(bias + lane, count));
    return s;
  }
};

template <class S>
inline typename S::F activate(Epilogue epilogue, typename S::F gate) {
  return epilogue == Epilogue::silu_multiply ? silu<S>(gate) : gelu<S>(gate);
}

// y = silu(y) * s or its like.
template <class S>
void multiply_gate(Epilogue epilogue, const float* s, std::uint32_t size, float* y) {
  for (std::uint32_t i = 0; i < size; i += S::kLanes) {
    const std::uint32_t count = size - i;
    const typename S::F gate = activate<S>(epilogue, S::load_first(y + i, count));
    S::store_first(y + i, S::mul(gate, S::load_first(s + i, count)), count);
  }
}

// Turns sums of rows [row, row + rows) into outputs. `gate` holds what the epilogue multiplies
// with, [tokens, sums.lanes], or is null where that comes from the output's place.
template <class S>
void finish(const RawProduct& product, std::uint32_t first_token, std::uint32_t tokens,
            std::uint32_t row, std::uint32_t rows, const PanelSums& sums, const float* gate) {
  const float* bias = product.bias == nullptr ? nullptr : product.bias + row;
  for (std::uint32_t t = 0; t < tokens; ++t) {
    float* out = product.out + (first_token + t) * product.out_stride + row;
    if (t + kOutputsAhead < tokens) {
      const float* ahead = out + kOutputsAhead * product.out_stride;
      for (std::uint32_t lane = 0; lane < rows; lane += 16) __builtin_prefetch(ahead + lane, 1);
    }
    for (std::uint32_t lane = 0; lane < rows; lane += S::kLanes) {
      const std::uint32_t count = rows - lane;
      typename S::F s = sums.load<S>(bias, t, lane, count);
      float* y = out + lane;
      if (gate != nullptr) {
        s = S::mul(S::load(gate + std::size_t{t} * sums.lanes + lane), s);
      } else if (product.epilogue == Epilogue::add) {
        s = S::add(S::load_first(y, count), s);
      } else if (product.epilogue != Epilogue::store) {
        s = S::mul(activate<S>(product.epilogue, S::load_first(y, count)), s);
      }
      S::store_first(y, s, count);
    }
  }
}

// The outputs of rows [row, row + rows) for a group of rows of activations. add_all(product) writes
// a product's sums to where `sums` reads them.
template <class S, class AddAll>
void store_outputs(const RawProduct& product, std::uint32_t first_token, std::uint32_t tokens,
                   std::uint32_t row, std::uint32_t rows, const PanelSums& sums,
                   const Scratch& scratch, const AddAll& add_all) {
  const float* gate = nullptr;
  if (product.gate != nullptr) {
    add_all(*product.gate);
    const float* bias = product.gate->bias == nullptr ? nullptr : product.gate->bias + row;
    for (std::uint32_t t = 0; t < tokens; ++t) {
      for (std::uint32_t lane = 0; lane < rows; lane += S::kLanes) {
        S::store(scratch.gate + std::size_t{t} * sums.lanes + lane,
                 activate<S>(product.epilogue, sums.load<S>(bias, t, lane, rows - lane)));
      }
    }
    gate = scratch.gate;
  }
  add_all(product);
  finish<S>(product, first_token, tokens, row, rows, sums, gate);
}

}  // namespace
}  // namespace edgerunner::cpu
