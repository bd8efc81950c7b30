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

bool cuda_available() { return false; }

}  // namespace edgerunner
