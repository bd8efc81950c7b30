#include "arch/family.h"

namespace edgerunner {

// Qwen 2 and 2.5: biases on q, k and v.
Decoder read_qwen2(const Metadata& metadata, TensorReader& tensors) {
  return read_standard_decoder(metadata, tensors, {.rope_layout = RopeLayout::half_split});
}

// Qwen 1.5 and 2 as mixtures of experts: beside the chosen ones, one that every token goes through.
Decoder read_qwen2moe(const Metadata& metadata, TensorReader& tensors) {
  return read_standard_decoder(metadata, tensors, {.rope_layout = RopeLayout::half_split});
}

}  // namespace edgerunner
