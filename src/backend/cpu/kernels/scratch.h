#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/element_type.h"

namespace edgerunner::cpu {

// Up to so many rows of activations AVX2 multiplies with weights in the order of memory: the
// reduction of the products to a number a block is theirs each, while a panel is unpacked for all.
inline constexpr std::uint32_t kRowTokens = 4;
// Up to so many AVX-512 multiplies with quantised weights that it transposes in registers, eight
// rows of activations at a time, and AMX halves as they stand in the file; and f32 activations with
// floats.
inline constexpr std::uint32_t kDirectTokens = 16;
inline constexpr std::uint32_t kFloatRowTokens = 8;
// Rows of bfloat16 activations in a tile. Up to so many take weights as they are in
// the file.
inline constexpr std::uint32_t kAvx512Bf16Tokens = 6;
inline constexpr std::uint32_t kAvx2Bf16Tokens = 2;
inline constexpr std::uint32_t kNeonBf16Tokens = 4;
// Up to so many rows of activations, unpacking the weights costs more than multiplying them, and
// the panel is kept in less than half of a level 1 cache of 32 KiB, beside the weights that pass
// through it.
inline constexpr std::uint32_t kFewTokens = 32;
inline constexpr std::size_t kSmallPanelBytes = 14 * 1024;
// Otherwise in a part of the level 2 cache, so that the activations stream past it in long rows.
inline constexpr std::size_t kLargePanelBytes = 160 * 1024;
// Rows of activations whose sums are kept at once.
inline constexpr std::uint32_t kGroupTokens = 512;
// Steps that a chunk may be longer than its measure.
inline constexpr std::uint32_t kSlackSteps = 4;

// Of internal linkage, so that each instruction set has its own.
namespace {

// Which operand stands in scratch as the kernel of few rows that runs for a type and a number of
// rows lays it out.
struct LaidOut {
  std::uint64_t operand;  // Product::operand; 0: none that has a name
  ElementType type;
  std::uint32_t tokens;
};

// Of which operand the masks stand in scratch.
struct Masked {
  std::uint64_t operand;
  std::uint32_t tokens;
};

// What a panel product keeps beside its operands: the parts of multiply_scratch_bytes.
struct Scratch {
  // [steps, panels, record vectors, lanes]: the largest is a chunk with its slack
  static constexpr std::size_t kPanelBytes = kLargePanelBytes + 64 * 1024;
  // [kGroupTokens, 32] f32, of the blocks and of their second terms each
  static constexpr std::size_t kSumsBytes = kGroupTokens * 32 * sizeof(float);
  // A chunk of 16 weight rows on their way to the panel, f32 at most: [16, columns]
  static constexpr std::size_t kTemporaryBytes = kPanelBytes;
  static constexpr std::size_t kLaidOutAt = kPanelBytes + 3 * kSumsBytes + kTemporaryBytes;
  static constexpr std::size_t kBytes = kLaidOutAt + 64;
  // Beside those, for each step of the columns: a bit for each of kGroupTokens
  static constexpr std::size_t kStepBytes = kGroupTokens / 8;

  explicit Scratch(std::byte* p)
      : panel(reinterpret_cast<std::uint8_t*>(p)),
        sums(reinterpret_cast<float*>(p + kPanelBytes)),
        term_sums(reinterpret_cast<float*>(p + kPanelBytes + kSumsBytes)),
        gate(reinterpret_cast<float*>(p + kPanelBytes + 2 * kSumsBytes)),
        temporary(p + kPanelBytes + 3 * kSumsBytes),
        laid_out(reinterpret_cast<LaidOut*>(p + kLaidOutAt)),
        masked(reinterpret_cast<Masked*>(p + kLaidOutAt + sizeof(LaidOut))),
        step_masks(reinterpret_cast<std::uint64_t (*)[kGroupTokens / 64]>(p + kBytes)) {}

  std::uint8_t* panel;
  float* sums;
  float* term_sums;
  float* gate;  // [kGroupTokens, 32]: of a gated product
  std::byte* temporary;
  LaidOut* laid_out;
  Masked* masked;
  // [steps]: masks of panels, of `masked`; direct products have other things there
  std::uint64_t (*step_masks)[kGroupTokens / 64];

  // Whether the operand of so many rows stands there already; from now on it does, where it has a
  // name.
  bool holds(std::uint64_t operand, ElementType type, std::uint32_t tokens) const {
    const bool same = operand != 0 && laid_out->operand == operand && laid_out->type == type &&
                      laid_out->tokens == tokens;
    *laid_out = {operand, type, tokens};
    return same;
  }
  // The same of the masks of so many rows, all that the operand has.
  bool holds_masks(std::uint64_t operand, std::uint32_t tokens) const {
    const bool same = operand != 0 && masked->operand == operand && masked->tokens == tokens;
    *masked = {operand, tokens};
    return same;
  }
};

}  // namespace

}  // namespace edgerunner::cpu
