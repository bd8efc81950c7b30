#pragma once

#include <memory>

#include "backend/executor.h"

namespace edgerunner {

// How a backend is made, and what it needs.
struct Backend {
  std::unique_ptr<Executor> (*make)(const Decoder&, const ExecutorOptions&);
  MemoryNeed (*need)(const DecoderSpec&, const ExecutorOptions&);
  bool in_system_memory;  // else it checks the device's memory itself
};

// Throws Error(invalid_argument) for a value that names no backend.
Backend find_backend(BackendKind kind);

}  // namespace edgerunner
