#include <fmt/format.h>

#include <array>
#include <cmath>
#include <functional>

#include "convert/dimensions.h"
#include "convert/family.h"

namespace edgerunner::convert {
namespace {

constexpr std::array kCommonRoles = {
    Role{"self_attn.q_proj", "attn_q", Rows::query},
    Role{"self_attn.k_proj", "attn_k", Rows::key},
    Role{"self_attn.v_proj", "attn_v"},
    Role{"self_attn.qkv_proj", "attn_qkv"},
    Role{"self_attn.o_proj", "attn_output"},
    Role{"self_attn.q_norm", "attn_q_norm"},
    Role{"self_attn.k_norm", "attn_k_norm"},
    Role{"mlp.gate_proj", "ffn_gate"},
    Role{"mlp.up_proj", "ffn_up"},
    Role{"mlp.gate_up_proj", "ffn_up"},
    Role{"mlp.down_proj", "ffn_down"},
    Role{"mlp.c_fc", "ffn_up"},
    Role{"mlp.c_proj", "ffn_down"},
    Role{"mlp.gate", "ffn_gate_inp"},
    Role{"mlp.experts.*.gate_proj", "ffn_gate_exps"},
    Role{"mlp.experts.*.up_proj", "ffn_up_exps"},
    Role{"mlp.experts.*.down_proj", "ffn_down_exps"},
    Role{"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
    Role{"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
    Role{"mlp.shared_expert.up_proj", "ffn_up_shexp"},
    Role{"mlp.shared_expert.down_proj", "ffn_down_shexp"},
    Role{"block_sparse_moe.gate", "ffn_gate_inp"},
    Role{"block_sparse_moe.experts.*.w1", "ffn_gate_exps"},
    Role{"block_sparse_moe.experts.*.w3", "ffn_up_exps"},
    Role{"block_sparse_moe.experts.*.w2", "ffn_down_exps"},
};

constexpr std::array kNormsBefore = {
    Role{"input_layernorm", "attn_norm"},
    Role{"post_attention_layernorm", "ffn_norm"},
};
constexpr std::array kNormsAfter = {
    Role{"post_attention_layernorm", "post_attention_norm"},
    Role{"post_feedforward_layernorm", "post_ffw_norm"},
};
constexpr std::array kNormsBeforeAndAfter = {
    Role{"input_layernorm", "attn_norm"},
    Role{"post_attention_layernorm", "post_attention_norm"},
    Role{"pre_feedforward_layernorm", "ffn_norm"},
    Role{"post_feedforward_layernorm", "post_ffw_norm"},
};

// Refuses a config whose layers, as `layer_types` lists them, do not have full attention exactly
// where `full` says.
void require_layer_types(const Config& config, const std::function<bool(std::size_t)>& full) {
  const nlohmann::json* types = config.find("layer_types");
  if (types == nullptr) return;
  if (!types->is_array()) config.refuse("layer_types", "must be a list");
  for (std::size_t i = 0; i < types->size(); ++i) {
    const auto& type = (*types)[i];
    if (type != (full(i) ? "full_attention" : "sliding_attention")) {
      config.unsupported(
          fmt::format("'layer_types' has {} at layer {}, an order of layers that "
                      "is not supported",
                      type.dump(), i));
    }
  }
}

void require_full_attention(const Config& config, MetadataKeys& /*keys*/) {
  if (config.find_bool("use_sliding_window").value_or(false)) {
    config.unsupported("'use_sliding_window' is not supported in this family");
  }
  require_layer_types(config, [](std::size_t) { return true; });
}

void add_window(const Config& config, MetadataKeys& keys) {
  if (config.has("sliding_window")) {
    keys.set_uint("attention.sliding_window", config.uint("sliding_window"));
  }
}

void add_experts(const Config& config, MetadataKeys& keys, std::string_view count_key) {
  keys.set_uint("expert_count", config.uint(count_key));
  keys.set_uint("expert_used_count", config.uint("num_experts_per_tok"));
}

void add_mixtral(const Config& config, MetadataKeys& keys) {
  add_experts(config, keys, "num_local_experts");
  add_window(config, keys);
}

void add_qwen2moe(const Config& config, MetadataKeys& keys) {
  require_full_attention(config, keys);
  add_experts(config, keys, "num_experts");
  if (config.find_bool("norm_topk_prob").value_or(false)) {
    config.unsupported("'norm_topk_prob' is true, which this family has not in GGUF");
  }
  keys.set_uint("expert_feed_forward_length", config.uint("moe_intermediate_size"));
  keys.set_uint("expert_shared_feed_forward_length",
                config.uint("shared_expert_intermediate_size"));
}

void add_qwen3moe(const Config& config, MetadataKeys& keys) {
  require_full_attention(config, keys);
  add_experts(config, keys, config.has("num_experts") ? "num_experts" : "num_local_experts");
  if (!config.find_bool("norm_topk_prob").value_or(false)) {
    config.unsupported("'norm_topk_prob' is not true, which this family has not in GGUF");
  }
  keys.set_uint("expert_feed_forward_length", config.uint("moe_intermediate_size"));
}

// The field's reader takes the root of head_dim for the scale, but where another is named.
void add_query_scale(const Config& config, MetadataKeys& keys) {
  const double scalar = config.find_float("query_pre_attn_scalar").value_or(256);
  if (!(scalar > 0)) config.refuse("query_pre_attn_scalar", "must be positive");
  if (scalar != Dimensions::of(config).head_dim) {
    keys.set_float("attention.scale", 1 / std::sqrt(scalar));
  }
}

void add_gemma2(const Config& config, MetadataKeys& keys) {
  add_query_scale(config, keys);
  keys.set_uint("attention.sliding_window", config.uint("sliding_window"));
  keys.set_float("attn_logit_softcapping", config.find_float("attn_logit_softcapping").value_or(0));
  keys.set_float("final_logit_softcapping",
                 config.find_float("final_logit_softcapping").value_or(0));
  require_layer_types(config, [](std::size_t layer) { return layer % 2 == 1; });
}

void add_gemma3(const Config& config, MetadataKeys& keys) {
  add_query_scale(config, keys);
  keys.set_uint("attention.sliding_window", config.uint("sliding_window"));
  for (const std::string_view cap : {"attn_logit_softcapping", "final_logit_softcapping"}) {
    if (config.find_float(cap).value_or(0) != 0) {
      config.unsupported(fmt::format("'{}' is not supported in this family", cap));
    }
  }
  if (config.find_uint("sliding_window_pattern").value_or(6) != 6) {
    config.unsupported("a 'sliding_window_pattern' other than 6 is not supported");
  }
  require_layer_types(config, [](std::size_t layer) { return layer % 6 == 5; });
}

void add_granite(const Config& config, MetadataKeys& keys) {
  keys.set_float("embedding_scale", config.find_float("embedding_multiplier").value_or(1));
  keys.set_float("residual_scale", config.find_float("residual_multiplier").value_or(1));
  keys.set_float("attention.scale", config.find_float("attention_multiplier").value_or(1));
  keys.set_float("logit_scale", config.find_float("logits_scaling").value_or(1));
}

// Every fourth layer goes without RoPE.
void add_smollm3(const Config& config, MetadataKeys& keys) {
  constexpr std::uint32_t kPeriod = 4;
  require_full_attention(config, keys);
  const nlohmann::json* list = config.find("no_rope_layers");
  if (list == nullptr) {
    if (config.find_uint("no_rope_layer_interval").value_or(kPeriod) == kPeriod) return;
    config.unsupported("a 'no_rope_layer_interval' other than 4 is not supported");
  }
  if (!list->is_array()) config.refuse("no_rope_layers", "must be a list");
  for (std::size_t i = 0; i < list->size(); ++i) {
    if ((*list)[i] != ((i + 1) % kPeriod == 0 ? 0 : 1)) {
      config.unsupported("'no_rope_layers' other than every fourth are not supported");
    }
  }
}

void refuse_parallel_blocks(const Config& config, MetadataKeys& keys) {
  if (config.find_bool("use_parallel_residual").value_or(false)) {
    config.unsupported("'use_parallel_residual' is not supported");
  }
  keys.set_flag("use_parallel_residual", false);
}

constexpr std::string_view kGelu = "gelu_pytorch_tanh";

constexpr std::array kFamilies = {
    Family{.class_name = "LlamaForCausalLM",
           .architecture = "llama",
           .norms = kNormsBefore,
           .interleaved = true},
    Family{.class_name = "MistralForCausalLM",
           .architecture = "llama",
           .norms = kNormsBefore,
           .interleaved = true,
           .add_metadata = add_window},
    Family{.class_name = "MixtralForCausalLM",
           .architecture = "llama",
           .norms = kNormsBefore,
           .interleaved = true,
           .add_metadata = add_mixtral},
    Family{.class_name = "GraniteForCausalLM",
           .architecture = "granite",
           .norms = kNormsBefore,
           .interleaved = true,
           .add_metadata = add_granite},
    Family{.class_name = "SmolLM3ForCausalLM",
           .architecture = "smollm3",
           .norms = kNormsBefore,
           .interleaved = true,
           .add_metadata = add_smollm3},
    Family{.class_name = "Qwen2ForCausalLM",
           .architecture = "qwen2",
           .norms = kNormsBefore,
           .add_metadata = require_full_attention},
    Family{.class_name = "Qwen2MoeForCausalLM",
           .architecture = "qwen2moe",
           .norms = kNormsBefore,
           .add_metadata = add_qwen2moe},
    Family{.class_name = "Qwen3ForCausalLM",
           .architecture = "qwen3",
           .norms = kNormsBefore,
           .add_metadata = require_full_attention},
    Family{.class_name = "Qwen3MoeForCausalLM",
           .architecture = "qwen3moe",
           .norms = kNormsBefore,
           .add_metadata = add_qwen3moe},
    Family{.class_name = "Phi3ForCausalLM",
           .architecture = "phi3",
           .norms = kNormsBefore,
           .add_metadata = add_window},
    Family{.class_name = "Olmo2ForCausalLM", .architecture = "olmo2", .norms = kNormsAfter},
    Family{.class_name = "Gemma2ForCausalLM",
           .architecture = "gemma2",
           .norms = kNormsBeforeAndAfter,
           .norm_offset = 1,
           .activation = kGelu,
           .add_metadata = add_gemma2},
    Family{.class_name = "Gemma3ForCausalLM",
           .architecture = "gemma3",
           .norms = kNormsBeforeAndAfter,
           .norm_offset = 1,
           .activation = kGelu,
           .add_metadata = add_gemma3},
    Family{.class_name = "Starcoder2ForCausalLM",
           .architecture = "starcoder2",
           .norms = kNormsBefore,
           .activation = kGelu,
           .epsilon = "norm_epsilon",
           .add_metadata = add_window},
    Family{.class_name = "StableLmForCausalLM",
           .architecture = "stablelm",
           .norms = kNormsBefore,
           .epsilon = "layer_norm_eps",
           .add_metadata = refuse_parallel_blocks},
};

}  // namespace

constexpr std::span<const Role> kRoles = kCommonRoles;

const Family& family_of(const Config& config) {
  const nlohmann::json* names = config.find("architectures");
  if (names == nullptr || !names->is_array() || names->size() != 1 || !names->front().is_string()) {
    config.refuse("architectures", "must be a list of one name");
  }
  const auto wanted = names->front().get<std::string>();
  std::string known;
  for (const Family& family : kFamilies) {
    if (family.class_name == wanted) return family;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", family.class_name);
  }
  config.unsupported(
      fmt::format("the architecture '{}' is not supported (there are {})", wanted, known));
}

}  // namespace edgerunner::convert
