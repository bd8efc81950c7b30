#pragma once

#include <memory>

#include "backend/cuda/device_weights.h"
#include "backend/executor.h"

namespace edgerunner::cuda {

// make_cuda_executor (backend/executor.h), and the same with weights made on the device.
std::unique_ptr<Executor> make_executor(const Decoder& decoder, const ExecutorOptions& options,
                                        WeightSource source);

}  // namespace edgerunner::cuda
