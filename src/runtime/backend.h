#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "backend/executor.h"

namespace edgerunner {

// How a backend is made, and what it needs.
struct Backend {
  std::unique_ptr<Executor> (*make)(const Decoder&, const ExecutorOptions&);
  MemoryNeed (*need)(const DecoderSpec&, const ExecutorOptions&);
  // Bytes that the weights take; null: those of the mapped file.
  std::uint64_t (*weight_bytes)(const Decoder&);
  // Bytes that may be taken; nullopt where nobody says.
  std::optional<std::uint64_t> (*available)();
  // ModelOptions::prefill_chunk where it is 0: as many rows as the kernels want for full speed.
  std::uint32_t prefill_chunk;

  bool reads_the_mapped_file() const { return weight_bytes == nullptr; }
};

// Throws Error(invalid_argument) for a value that names no backend.
Backend find_backend(BackendKind kind);

}  // namespace edgerunner
