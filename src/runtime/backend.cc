#include "runtime/backend.h"

#include "base/memory.h"
#include "edgerunner/error.h"

namespace edgerunner {

Backend find_backend(BackendKind kind) {
  switch (kind) {
    case BackendKind::reference:
      return {make_reference_executor, reference_memory_need, nullptr, available_memory, 512};
    case BackendKind::cpu:
      return {make_cpu_executor, cpu_memory_need, nullptr, available_memory, 512};
    case BackendKind::cuda:
      return {make_cuda_executor, cuda_memory_need, cuda_weight_bytes, cuda_available_memory, 4096};
  }
  throw Error(ErrorCode::invalid_argument, "ModelOptions::backend names no backend");
}

}  // namespace edgerunner
