#include "arch/family.h"

namespace edgerunner {

// StableLM 3B and StableLM 2 1.6B: LayerNorm, RoPE on a part of each head. The 12B's parallel
// attention and feed-forward blocks are another layer.
Decoder read_stablelm(const Metadata& metadata, TensorReader& tensors) {
  if (metadata.file().get_bool(metadata.full_key("use_parallel_residual")).value_or(false)) {
    metadata.unsupported(
        "attention and feed-forward blocks side by side (use_parallel_residual) "
        "are not supported");
  }
  return read_standard_decoder(metadata, tensors,
                               {.rope_layout = RopeLayout::half_split, .norm = NormKind::layer});
}

}  // namespace edgerunner
