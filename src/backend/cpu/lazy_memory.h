#pragma once

#include <cstddef>

namespace edgerunner::cpu {

// Zeroed memory straight from the system, aligned to a page: it counts as used only where it has
// been touched. Throws Error(out_of_memory) where the address space is refused.
class LazyMemory {
 public:
  explicit LazyMemory(std::size_t bytes);
  ~LazyMemory();
  LazyMemory(const LazyMemory&) = delete;
  LazyMemory& operator=(const LazyMemory&) = delete;

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_;
};

}  // namespace edgerunner::cpu
