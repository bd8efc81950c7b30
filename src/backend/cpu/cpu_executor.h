#pragma once

#include <memory>

#include "backend/executor.h"
#include "base/cpu_features.h"

namespace edgerunner::cpu {

// make_cpu_executor with a given instruction set, which the machine must run; tests compare them.
std::unique_ptr<Executor> make_executor(const Decoder& decoder, const ExecutorOptions& options,
                                        Isa isa);

}  // namespace edgerunner::cpu
