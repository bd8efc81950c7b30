#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "arch/decoder_spec.h"
#include "backend/cpu/lazy_memory.h"
#include "backend/cpu/vector_kernels.h"

namespace edgerunner::cpu {

// Cosines and sines of one RoPE, computed in double and rounded once.
class RopeTable {
 public:
  RopeTable(const RopeSpec& rope, std::uint32_t max_context);

  static std::size_t bytes(const RopeSpec& rope, std::uint32_t max_context);

  // Fills one position; different ones may be filled at the same time.
  void fill(std::uint32_t position);
  Rotation rotation(std::uint32_t position) const;

 private:
  const RopeSpec& rope_;
  std::span<const double> frequencies_;
  std::uint32_t dims_;
  LazyMemory memory_;  // [max_context][cosine, sine][dims] f32
};

// The tables of a decoder, filled for the positions seen so far.
class RopeTables {
 public:
  RopeTables(const DecoderSpec& spec, std::uint32_t max_context)
      : main_(spec.rope, max_context), local_(spec.local_rope, max_context) {}

  static std::size_t bytes(const DecoderSpec& spec, std::uint32_t max_context) {
    return RopeTable::bytes(spec.rope, max_context) +
           RopeTable::bytes(spec.local_rope, max_context);
  }

  // Positions below this are filled.
  std::uint32_t ready() const { return ready_; }
  void set_ready(std::uint32_t positions) { ready_ = positions; }
  // Fills one position; different ones may be filled at the same time.
  void fill(std::uint32_t position) {
    main_.fill(position);
    local_.fill(position);
  }

  // Rotates nothing for a layer without RoPE.
  Rotation rotation(LayerRope rope, std::uint32_t position) const {
    if (rope == LayerRope::none) return {};
    return (rope == LayerRope::local ? local_ : main_).rotation(position);
  }

 private:
  RopeTable main_;
  RopeTable local_;
  std::uint32_t ready_ = 0;
};

}  // namespace edgerunner::cpu
