#pragma once

// A tile of bfloat16 products: S::kBf16Vectors vectors of weight rows times kTokens rows of
// activations, from the first column to the last. A row has eight lanes of a vector, lane l of
// which takes pairs l, l + 8, ... of the row, as matmul.h has it, so that nothing is transposed but
// what the sums end in. Written once over a set of vector operations S, included by the translation
// unit of each instruction set.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/fetch.h"

namespace edgerunner::cpu {
namespace {

// Sums of an output side by side, and the columns that they take in a step.
inline constexpr int kBf16Sums = 8;
inline constexpr std::uint32_t kStepColumns = 2 * kBf16Sums;
inline constexpr std::size_t kStepBytes = sizeof(std::uint16_t) * kStepColumns;

// Weight rows of a vector, or vectors of a row.
template <class S>
inline constexpr int kVectorRows = S::kLanes > kBf16Sums ? S::kLanes / kBf16Sums : 1;
template <class S>
inline constexpr int kRowParts = S::kLanes < kBf16Sums ? kBf16Sums / S::kLanes : 1;
template <class S>
inline constexpr int kTileRows = S::kBf16Vectors* kVectorRows<S>;

// Where the weights of a tile are in the file, as bfloat16 or as f16 to be rounded to it.
template <class S, bool kFromHalves>
struct FileRows {
  const std::uint8_t* row[kTileRows<S>];
  std::uint32_t cols;

  std::uint32_t steps() const { return cols / kStepColumns; }
  typename S::I load(std::uint32_t step, int vector, int part) const {
    return S::template load_bf16<kFromHalves>(row + vector * kVectorRows<S>,
                                              kStepBytes * step + sizeof(typename S::I) * part);
  }
  // Calls use(rest) with the columns behind the whole steps, as a step of their own, if there are
  // any.
  template <class Use>
  void with_rest(const Use& use) const {
    const std::uint32_t left = cols % kStepColumns;
    if (left == 0) return;
    std::uint8_t bytes[kTileRows<S>][kStepBytes] = {};
    FileRows rest;
    rest.cols = kStepColumns;
    for (int r = 0; r < kTileRows<S>; ++r) {
      __builtin_memcpy(bytes[r], row[r] + kStepBytes * steps(), sizeof(std::uint16_t) * left);
      rest.row[r] = bytes[r];
    }
    use(rest);
  }
};

// The same weights as they stand in scratch: step after step, vector after vector.
template <class S>
struct PanelRows {
  static constexpr std::size_t kRecord = kTileRows<S> * kStepBytes;
  std::uint8_t* begin;
  std::uint32_t cols;

  std::uint32_t steps() const { return (cols + kStepColumns - 1) / kStepColumns; }
  template <class Use>
  void with_rest(const Use&) const {}  // the last step was padded
  std::uint8_t* at(std::uint32_t step, int vector, int part) const {
    return begin + kRecord * step + sizeof(typename S::I) * (vector * kRowParts<S> + part);
  }
  typename S::I load(std::uint32_t step, int vector, int part) const {
    return S::load_integers(at(step, vector, part));
  }

  template <bool kFromHalves>
  void fill(const FileRows<S, kFromHalves>& rows) const {
    const auto copy = [&](const FileRows<S, kFromHalves>& from, std::uint32_t first) {
      for (std::uint32_t step = 0; step < from.steps(); ++step) {
        for (int v = 0; v < S::kBf16Vectors; ++v) {
          for (int part = 0; part < kRowParts<S>; ++part) {
            S::store_record(at(first + step, v, part), 0, from.load(step, v, part));
          }
        }
      }
    };
    copy(rows, 0);
    rows.with_rest([&](const FileRows<S, kFromHalves>& rest) { copy(rest, rows.steps()); });
  }
};

// Rows of activations, padded with zeros to whole steps.
struct Bf16Activations {
  const std::byte* begin;
  std::size_t stride;
};

template <class S, std::uint32_t kTokens>
class Bf16Tile {
 public:
  using F = typename S::F;
  using I = typename S::I;

  explicit Bf16Tile(Bf16Activations x) : x_(x) {}

  // The sums to [kTokens, stride]; of rows one vector after the other, each from end to end.
  template <class Rows>
  void run_in_turn(const Rows& rows, float* sums, std::uint32_t stride) {
    run_parts(rows, sums, stride, [&](int part) {
#pragma GCC unroll 8
      for (int v = 0; v < S::kBf16Vectors; ++v) add_steps<1>(rows, 0, v, part, [] {});
    });
  }
  // Of all rows side by side.
  template <class Rows>
  void run(const Rows& rows, Fetch& fetch, float* sums, std::uint32_t stride) {
    run_parts(rows, sums, stride, [&](int part) {
      add_steps<S::kBf16Vectors>(rows, 0, 0, part, [&] { fetch.step(); });
    });
  }

 private:
  // add_whole(part) adds the whole steps.
  template <class Rows, class AddWhole>
  void run_parts(const Rows& rows, float* sums, std::uint32_t stride, const AddWhole& add_whole) {
#pragma GCC unroll 2
    for (int part = 0; part < kRowParts<S>; ++part) {
      clear(part);
      add_whole(part);
      rows.with_rest([&](const auto& rest) {
        add_steps<S::kBf16Vectors>(rest, rows.steps(), 0, part, [] {});
      });
    }
    S::template store_bf16_sums<kTokens>(sum_, sums, stride);
  }

  void clear(int part) {
#pragma GCC unroll 8
    for (std::uint32_t t = 0; t < kTokens; ++t) {
#pragma GCC unroll 8
      for (int v = 0; v < S::kBf16Vectors; ++v) sum_[t][v][part] = S::zero();
    }
  }

  // All steps of kVectors vectors, of which `first_step` is the first; fetch() comes before
  // each.
  template <int kVectors, class Rows, class Fetches>
  void add_steps(const Rows& rows, std::uint32_t first_step, int first_vector, int part,
                 const Fetches& fetch) {
    const std::byte* x = x_.begin + kStepBytes * first_step + sizeof(I) * part;
    F sum[kTokens][kVectors];
#pragma GCC unroll 8
    for (std::uint32_t t = 0; t < kTokens; ++t) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[t][v] = sum_[t][first_vector + v][part];
    }
    const std::uint32_t steps = rows.steps();
    for (std::uint32_t step = 0; step < steps; ++step) {
      fetch();
      I columns[kTokens];
#pragma GCC unroll 8
      for (std::uint32_t t = 0; t < kTokens; ++t) columns[t] = S::broadcast_bf16(x + t * x_.stride);
      x += kStepBytes;
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const I w = rows.load(step, first_vector + v, part);
#pragma GCC unroll 8
        for (std::uint32_t t = 0; t < kTokens; ++t)
          sum[t][v] = S::dot_bf16(sum[t][v], w, columns[t]);
      }
    }
#pragma GCC unroll 8
    for (std::uint32_t t = 0; t < kTokens; ++t) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum_[t][first_vector + v][part] = sum[t][v];
    }
  }

  Bf16Activations x_;
  F sum_[kTokens][S::kBf16Vectors][kRowParts<S>];
};

}  // namespace
}  // namespace edgerunner::cpu
