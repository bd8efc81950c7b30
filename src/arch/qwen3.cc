#include "arch/family.h"

namespace edgerunner {

// Qwen 3: RMSNorm on each query and key head, no biases, a head_dim of its own.
Decoder read_qwen3(const Metadata& metadata, TensorReader& tensors) {
  return read_standard_decoder(
      metadata, tensors, {.rope_layout = RopeLayout::half_split, .qk_norm = QkNorm::each_head});
}

Decoder read_qwen3moe(const Metadata& metadata, TensorReader& tensors) {
  return read_standard_decoder(metadata, tensors,
                               {.rope_layout = RopeLayout::half_split,
                                .qk_norm = QkNorm::each_head,
                                .normalised_experts = true});
}

}  // namespace edgerunner
