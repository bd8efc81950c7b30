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

Decoder read_llama(const Metadata& metadata, TensorReader& tensors);  // llama.cc; mistral too
Decoder read_qwen2(const Metadata& metadata, TensorReader& tensors);  // qwen2.cc
Decoder read_qwen3(const Metadata& metadata, TensorReader& tensors);  // qwen3.cc

// What the families share: a pre-norm decoder with grouped-query attention and SwiGLU.
struct PreNormTraits {
  RopeLayout rope_layout = RopeLayout::interleaved;
  bool qk_norm = false;  // RMSNorm on each query and key head is required
};
Decoder read_pre_norm_decoder(const Metadata& metadata, TensorReader& tensors,
                              const PreNormTraits& traits);

}  // namespace edgerunner
