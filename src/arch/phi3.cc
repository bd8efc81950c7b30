#include "arch/family.h"

namespace edgerunner {

// Phi 3 and 4: q, k and v in one tensor, gate and up in one; LongRoPE factors as tensors.
Decoder read_phi3(const Metadata& metadata, TensorReader& tensors) {
  return read_standard_decoder(metadata, tensors,
                               {.rope_layout = RopeLayout::half_split, .fused = true});
}

}  // namespace edgerunner
