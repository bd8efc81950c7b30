#include "runtime/plan_input.h"

namespace edgerunner {

MemoryPlanInput plan_input(const ModelOptions& options, const Backend& backend,
                           const gguf::File& file, const Decoder& decoder,
                           const AdapterShelf& adapters) {
  const DecoderSpec& spec = decoder.spec;
  MemoryPlanInput input;
  // A backend with memory of its own counts adapters among what it needs.
  input.weights_bytes = backend.weight_bytes == nullptr ? file.bytes() + adapters.bytes()
                                                        : backend.weight_bytes(decoder);
  input.trained_context = spec.context_length;
  input.vocab_size = spec.vocab_size;
  input.prefill_chunk = backend.prefill_chunk;
  input.adapter_floats = adapters.floats();
  input.adapters = adapters.all();
  input.available = options.memory_limit > 0 ? options.memory_limit : backend.available();
  input.need = [&spec, need = backend.need](const ExecutorOptions& wanted) {
    return need(spec, wanted);
  };
  return input;
}

}  // namespace edgerunner
