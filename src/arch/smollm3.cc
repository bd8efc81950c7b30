#include "arch/family.h"

namespace edgerunner {

// SmolLM3: the Llama family's layers, every fourth of them without RoPE (NoPE).
Decoder read_smollm3(const Metadata& metadata, TensorReader& tensors) {
  constexpr std::size_t kPeriod = 4;
  Decoder decoder = read_standard_decoder(metadata, tensors, {});
  std::vector<LayerSpec>& layers = decoder.spec.layers;
  for (std::size_t i = kPeriod - 1; i < layers.size(); i += kPeriod) {
    layers[i].rope = LayerRope::none;
  }
  return decoder;
}

}  // namespace edgerunner
