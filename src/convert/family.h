#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "convert/config.h"
#include "convert/metadata_keys.h"

namespace edgerunner::convert {

// What a module's rows are, for the layouts in which GGUF's differ.
enum class Rows { plain, query, key };

// A module of a layer: "self_attn.q_proj" becomes "attn_q", weight and bias alike.
struct Role {
  std::string_view hugging_face;
  std::string_view gguf;
  Rows rows = Rows::plain;
};

// A family of models: how its folder's names and numbers become GGUF's.
struct Family {
  std::string_view class_name;    // of config.json's "architectures": "LlamaForCausalLM"
  std::string_view architecture;  // general.architecture
  std::span<const Role> norms;    // whose names differ between families; the rest is kRoles
  // GGUF has the rotated pairs of q and k as neighbours where Hugging Face has them half a head
  // apart.
  bool interleaved = false;
  float norm_offset = 0;  // GGUF's norm weights are this much more
  std::string_view activation = "silu";
  std::string_view epsilon = "rms_norm_eps";  // of config.json; another one is LayerNorm's
  // Sets what the family alone has, and refuses what GGUF or EdgeRunner can't say.
  void (*add_metadata)(const Config& config, MetadataKeys& keys) = nullptr;
};

// Of the model that a config.json is for. Throws Error(unsupported) that names its architecture.
const Family& family_of(const Config& config);

// The modules that all families name alike.
extern const std::span<const Role> kRoles;

}  // namespace edgerunner::convert
