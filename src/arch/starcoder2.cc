#include "arch/family.h"

namespace edgerunner {

// StarCoder 2: LayerNorm, biases everywhere, a feed-forward network without a gate.
Decoder read_starcoder2(const Metadata& metadata, TensorReader& tensors) {
  return read_standard_decoder(metadata, tensors,
                               {.rope_layout = RopeLayout::half_split,
                                .norm = NormKind::layer,
                                .gated = false,
                                .activation = Activation::gelu_tanh});
}

}  // namespace edgerunner
