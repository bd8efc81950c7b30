#pragma once

#include <cstddef>
#include <cstdint>

namespace edgerunner::cpu {
namespace {

// Memory to be fetched beside a tile's products, so many lines a step; where it is empty, nothing.
struct Fetch {
  const std::uint8_t* next;
  const std::uint8_t* end;
  std::uint32_t lines;

  void step() {
    if (next >= end) return;
    for (std::uint32_t line = 0; line < lines; ++line) __builtin_prefetch(next + 64 * line, 0, 2);
    next += 64 * std::size_t{lines};
  }
};

}  // namespace
}  // namespace edgerunner::cpu
