#include "backend/executor.h"
#include "edgerunner/error.h"

// Stands in for the CUDA backend in a build without the CUDA toolkit.

namespace edgerunner {
namespace {

[[noreturn]] void refuse() {
  throw Error(ErrorCode::unsupported,
              "this build has CUDA off: install the CUDA toolkit and configure again with "
              "-DEDGERUNNER_CUDA=ON");
}

}  // namespace

std::unique_ptr<Executor> make_cuda_executor(const Decoder& /*decoder*/,
                                             const ExecutorOptions& /*options*/) {
  refuse();
}

MemoryNeed cuda_memory_need(const DecoderSpec& /*spec*/, const ExecutorOptions& /*options*/) {
  refuse();
}

std::uint64_t cuda_weight_bytes(const Decoder& /*decoder*/) { refuse(); }

std::optional<std::uint64_t> cuda_available_memory() { refuse(); }

bool cuda_available() { return false; }

}  // namespace edgerunner
