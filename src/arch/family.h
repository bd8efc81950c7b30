#pragma once

#include <span>
#include <string_view>

#include "arch/decoder.h"
#include "arch/metadata.h"
#include "arch/rope.h"
#include "arch/tensor_reader.h"

namespace edgerunner {

// A family of models: which general.architecture it answers to, and how its metadata and tensors
// become a Decoder.
struct Family {
  std::string_view architecture;
  Decoder (*read)(const Metadata& metadata, TensorReader& tensors);
};

// Every family that EdgeRunner runs, each in a file of its own.
std::span<const Family> families();

Decoder read_llama(const Metadata& metadata, TensorReader& tensors);  // llama.cc; mistral, mixtral
Decoder read_qwen2(const Metadata& metadata, TensorReader& tensors);  // qwen2.cc
Decoder read_qwen2moe(const Metadata& metadata, TensorReader& tensors);    // qwen2.cc
Decoder read_qwen3(const Metadata& metadata, TensorReader& tensors);       // qwen3.cc
Decoder read_qwen3moe(const Metadata& metadata, TensorReader& tensors);    // qwen3.cc
Decoder read_gemma2(const Metadata& metadata, TensorReader& tensors);      // gemma.cc
Decoder read_gemma3(const Metadata& metadata, TensorReader& tensors);      // gemma.cc
Decoder read_phi3(const Metadata& metadata, TensorReader& tensors);        // phi3.cc
Decoder read_granite(const Metadata& metadata, TensorReader& tensors);     // granite.cc
Decoder read_olmo2(const Metadata& metadata, TensorReader& tensors);       // olmo2.cc
Decoder read_smollm3(const Metadata& metadata, TensorReader& tensors);     // smollm3.cc
Decoder read_starcoder2(const Metadata& metadata, TensorReader& tensors);  // starcoder2.cc
Decoder read_stablelm(const Metadata& metadata, TensorReader& tensors);    // stablelm.cc

// RMSNorm of queries and keys before they are rotated.
enum class QkNorm { none, each_head, whole_row };

// What the families have in common is read by read_standard_decoder(); these are its choices. What
// a family alone has, its own file sets afterwards.
struct FamilyTraits {
  RopeLayout rope_layout = RopeLayout::interleaved;
  NormKind norm = NormKind::rms;
  QkNorm qk_norm = QkNorm::none;
  bool pre_norm = true;             // attn_norm, ffn_norm
  bool post_norm = false;           // post_attention_norm, post_ffw_norm
  bool fused = false;               // q, k, v in attn_qkv; gate and up in ffn_up
  bool normalised_experts = false;  // the weights of the chosen experts add up to 1
  bool gated = true;                // ffn_gate beside ffn_up
  Activation activation = Activation::silu;
};

// A decoder with grouped-query attention and feed-forward networks, dense or (in layers that have a
// router) mixtures of experts.
Decoder read_standard_decoder(const Metadata& metadata, TensorReader& tensors,
                              const FamilyTraits& traits);

// The parts of it.
std::vector<LayerSpec> read_layer_specs(const Metadata& metadata, std::uint32_t dim);
// Fills in what the tensors tell about the spec: which layers are mixtures.
LayerWeights read_layer_weights(const Metadata& metadata, TensorReader& tensors,
                                std::uint32_t index, LayerSpec& layer, std::uint32_t dim,
                                const FamilyTraits& traits);

}  // namespace edgerunner
