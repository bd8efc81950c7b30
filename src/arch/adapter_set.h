#pragma once

#include <cstdint>
#include <vector>

#include "arch/lora_adapter.h"

namespace edgerunner {

// The adapters that apply to a sequence together, each with the scale that its user chose. Never
// empty: a sequence without adapters has no set.
struct AdapterSet {
  struct Use {
    const LoraAdapter* adapter = nullptr;
    float scale = 1;  // finite, not 0
  };
  std::vector<Use> uses;

  // Names the set among all that a process has made: keys and values computed with it are of no use
  // to another.
  std::uint64_t id = 0;
};

// Floats that a row of A x takes in an executor's scratch, rounded up so that every adapter's begin
// on a cache line.
constexpr std::uint32_t adapter_floats(std::uint32_t rank) { return (rank + 15) / 16 * 16; }

inline std::uint32_t adapter_floats(const AdapterSet& set) {
  std::uint32_t floats = 0;
  for (const AdapterSet::Use& use : set.uses) floats += adapter_floats(use.adapter->largest_rank());
  return floats;
}

}  // namespace edgerunner
