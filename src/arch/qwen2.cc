#include "arch/family.h"

namespace edgerunner {

// Qwen 2 and 2.5: biases on q, k and v.
Decoder read_qwen2(const Metadata& metadata, TensorReader& tensors) {
  return read_pre_norm_decoder(metadata, tensors, {.rope_layout = RopeLayout::half_split});
}

}  // namespace edgerunner
