#include "arch/family.h"

namespace edgerunner {

// Llama 2, 3 and 3.1, SmolLM2, Mistral, Mixtral. The converter to GGUF permutes the rows of q and k
// so that the rotated pairs are neighbours. Llama 3.1's frequency factors come as
// rope_freqs.weight, Mistral's window as attention.sliding_window; Mixtral's layers are mixtures.
Decoder read_llama(const Metadata& metadata, TensorReader& tensors) {
  return read_standard_decoder(
      metadata, tensors, {.rope_layout = RopeLayout::interleaved, .normalised_experts = true});
}

}  // namespace edgerunner
