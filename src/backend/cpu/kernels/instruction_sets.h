#pragma once

#include "backend/cpu/matmul.h"

namespace edgerunner::cpu {

// One table an instruction set, each defined in a translation unit of its own.
extern const Kernels kScalarKernels;

}  // namespace edgerunner::cpu
