#include "arch/family.h"

namespace edgerunner {

// Granite 3: the Llama family's layers with four multipliers. attention.scale is read with the
// layers; the file's logit_scale divides.
Decoder read_granite(const Metadata& metadata, TensorReader& tensors) {
  Decoder decoder = read_standard_decoder(metadata, tensors, {});
  DecoderSpec& spec = decoder.spec;
  spec.embedding_scale = static_cast<float>(metadata.find_float("embedding_scale").value_or(1));
  spec.residual_scale = static_cast<float>(metadata.find_float("residual_scale").value_or(1));
  const double divisor = metadata.find_float("logit_scale").value_or(1);
  if (divisor == 0) metadata.refuse("logit_scale", "is 0, but divides the logits");
  spec.logit_scale = static_cast<float>(1 / divisor);
  return decoder;
}

}  // namespace edgerunner
