#pragma once

#include "arch/decoder.h"
#include "edgerunner/model.h"
#include "gguf/file.h"
#include "runtime/adapter_shelf.h"
#include "runtime/backend.h"
#include "runtime/memory_plan.h"

namespace edgerunner {

// What plan_memory needs to know of a file's model on a backend. Refers to the decoder.
MemoryPlanInput plan_input(const ModelOptions& options, const Backend& backend,
                           const gguf::File& file, const Decoder& decoder,
                           const AdapterShelf& adapters);

}  // namespace edgerunner
