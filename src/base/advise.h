#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <span>

namespace edgerunner {

// madvise() of a mapping's bytes. Whether the system takes the advice; a refusal costs speed alone.
inline bool advise(std::span<const std::byte> bytes, int advice) {
  // It takes a mutable pointer but writes nothing.
  return ::madvise(const_cast<std::byte*>(bytes.data()), bytes.size(), advice) == 0;
}

}  // namespace edgerunner
