#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string_view>

namespace edgerunner::jinja {

// What one rendering may take. Far above what a conversation needs: a thousand messages of a
// template that ships take some hundred thousand steps.
struct Limits {
  std::uint64_t steps = 20'000'000;
  std::size_t bytes = std::size_t{512} << 20;
};

// Counts what a rendering takes, and owns its memory: everything that a template makes lives until
// the rendering ends, so that values are plain pointers, may refer to one another in circles, and
// nothing is taken apart level by level. Throws Error(out_of_memory) beyond the limits.
class Budget {
 public:
  explicit Budget(const Limits& limits) : limits_(limits) {}

  void step(std::uint64_t count = 1) {
    steps_ += count;
    if (steps_ > limits_.steps) fail_steps();
  }
  // Bytes that are about to be taken, here or elsewhere.
  void take(std::size_t bytes) {
    if (bytes > limits_.bytes - bytes_) fail_bytes();
    bytes_ += bytes;
  }
  // Gives back what `take` counted for something that is gone.
  void give_back(std::size_t bytes) { bytes_ -= bytes; }

  void* allocate(std::size_t bytes, std::size_t alignment) {
    take(bytes);
    return arena_.allocate(bytes, alignment);
  }

  template <typename T>
  T* array(std::size_t count) {
    if (count > limits_.bytes / sizeof(T)) fail_bytes();
    return static_cast<T*>(allocate(count * sizeof(T), alignof(T)));
  }

  std::string_view copy(std::string_view text);

 private:
  [[noreturn]] void fail_steps() const;
  [[noreturn]] void fail_bytes() const;

  Limits limits_;
  std::uint64_t steps_ = 0;
  std::size_t bytes_ = 0;
  std::pmr::monotonic_buffer_resource arena_;
};

}  // namespace edgerunner::jinja
