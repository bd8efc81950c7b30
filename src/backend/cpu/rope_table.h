#pragma once

#include <cstddef>
#include <cstdint>

#include "arch/decoder_spec.h"
#include "backend/cpu/lazy_memory.h"
#include "backend/cpu/vector_kernels.h"

namespace edgerunner::cpu {

// Cosines and sines of the positions seen so far, computed in double and rounded once.
class RopeTable {
 public:
  RopeTable(const RopeSpec& rope, std::uint32_t max_context);

  static std::size_t bytes(const RopeSpec& rope, std::uint32_t max_context);

  // Positions below this are filled.
  std::uint32_t ready() const { return ready_; }
  // Fills one position; different ones may be filled at the same time.
  void fill(std::uint32_t position);
  void set_ready(std::uint32_t positions) { ready_ = positions; }

  Rotation rotation(std::uint32_t position) const;

 private:
  const RopeSpec& rope_;
  std::uint32_t dims_;
  std::uint32_t ready_ = 0;
  LazyMemory memory_;  // [max_context][cosine, sine][dims] f32
};

}  // namespace edgerunner::cpu
