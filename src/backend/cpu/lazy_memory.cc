#include "backend/cpu/lazy_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include "edgerunner/error.h"

namespace edgerunner::cpu {

LazyMemory::LazyMemory(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error(ErrorCode::out_of_memory,
                fmt::format("the system refused {} bytes for the KV cache and scratch; lower the "
                            "context length",
                            bytes));
  }
  data_ = static_cast<std::byte*>(memory);
#if defined(MADV_HUGEPAGE)
  madvise(memory, bytes, MADV_HUGEPAGE);  // fewer TLB misses; advice, so a refusal does not matter
#endif
}

LazyMemory::~LazyMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace edgerunner::cpu
