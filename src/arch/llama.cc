#include "arch/family.h"

namespace edgerunner {

// Llama 2, 3 and 3.1, SmolLM2, Mistral. The converter to GGUF permutes the rows of q and k so that
// the rotated pairs are neighbours. Llama 3.1's frequency factors come as rope_freqs.weight,
// Mistral's window as attention.sliding_window.
Decoder read_llama(const Metadata& metadata, TensorReader& tensors) {
  if (metadata.find_uint("expert_count").value_or(0) > 0) {
    metadata.unsupported(
        "mixture-of-experts models of the llama architecture (Mixtral) are not "
        "supported");
  }
  return read_pre_norm_decoder(metadata, tensors, {.rope_layout = RopeLayout::interleaved});
}

}  // namespace edgerunner
