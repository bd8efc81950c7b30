#include "quantize/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace edgerunner {
namespace {

constexpr std::array kRecipes = {
    Recipe{"F32", ElementType::f32, false, 0},
    Recipe{"F16", ElementType::f16, false, 1},
    Recipe{"BF16", ElementType::bf16, false, 32},
    Recipe{"Q8_0", ElementType::q8_0, false, 7},
    Recipe{"Q4_0", ElementType::q4_0, false, 2},
    Recipe{"Q4_1", ElementType::q4_1, false, 3},
    Recipe{"Q5_0", ElementType::q5_0, false, 8},
    Recipe{"Q5_1", ElementType::q5_1, false, 9},
    Recipe{"Q2_K", ElementType::q2_k, true, 10},
    Recipe{"Q3_K", ElementType::q3_k, false, 11},
    Recipe{"Q3_K_M", ElementType::q3_k, true, 12},
    Recipe{"Q4_K", ElementType::q4_k, false, 14},
    Recipe{"Q4_K_M", ElementType::q4_k, true, 15},
    Recipe{"Q5_K", ElementType::q5_k, false, 16},
    Recipe{"Q5_K_M", ElementType::q5_k, true, 17},
    Recipe{"Q6_K", ElementType::q6_k, false, 18},
    Recipe{"IQ4_NL", ElementType::iq4_nl, false, 25},
    Recipe{"IQ4_XS", ElementType::iq4_xs, false, 30},
};

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::toupper(static_cast<unsigned char>(x)) ==
           std::toupper(static_cast<unsigned char>(y));
  });
}

// What stands in for a type whose blocks don't divide the rows: the next finer one that has blocks
// of 32.
ElementType with_short_blocks(ElementType type) {
  switch (type) {
    case ElementType::q2_k:
    case ElementType::q3_k:
    case ElementType::iq4_xs:
      return ElementType::iq4_nl;
    case ElementType::q4_k:
      return ElementType::q5_0;
    case ElementType::q5_k:
      return ElementType::q5_1;
    case ElementType::q6_k:
      return ElementType::q8_0;
    default:
      return type;
  }
}

ElementType fitting(ElementType type, std::uint64_t cols) {
  if (cols % traits(type).block_length == 0) return type;
  type = with_short_blocks(type);
  return cols % traits(type).block_length == 0 ? type : ElementType::f16;
}

// "blk.7.attn_v.weight" is layer 7's "attn_v.weight"; other names have no layer.
struct Place {
  std::optional<std::uint32_t> layer;
  std::string_view role;
};

Place place_of(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return {std::nullopt, name};
  const char* const end = name.data() + name.size();
  std::uint32_t layer = 0;
  const auto parsed = std::from_chars(name.data() + kPrefix.size(), end, layer);
  if (parsed.ec != std::errc() || parsed.ptr == end || *parsed.ptr != '.') {
    return {std::nullopt, name};
  }
  return {layer, std::string_view(parsed.ptr + 1, static_cast<std::size_t>(end - parsed.ptr - 1))};
}

// In a model with so many experts, the field's mixes keep attention finer, whose matrices are few
// beside those of the experts.
constexpr std::uint32_t kMixtralExperts = 8;

// The layers in which the field's Q4_K_M and Q5_K_M keep attn_v and ffn_down finer: the first and
// last eighth, and every third between.
bool is_sensitive(std::uint32_t layer, std::uint32_t layers) {
  const std::uint32_t eighth = layers / 8;
  return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
}

}  // namespace

std::optional<Recipe> find_recipe(std::string_view name) {
  for (const Recipe& recipe : kRecipes) {
    if (same_name(recipe.name, name)) return recipe;
  }
  return std::nullopt;
}

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  names.reserve(kRecipes.size());
  for (const Recipe& recipe : kRecipes) names.emplace_back(recipe.name);
  return names;
}

bool Recipe::fits(ElementType chosen) const {
  if (chosen == ElementType::iq4_nl || traits(chosen).block_length == 256) return true;
  // Not Q4_0 and Q5_0: a smaller mean error made SmolLM2's perplexity worse there
  // (docs/numerics.md).
  return type != chosen && (chosen == ElementType::q4_1 || chosen == ElementType::q5_1);
}

ModelOutline ModelOutline::of(const gguf::File& model) {
  const std::string architecture(model.get_string("general.architecture").value_or(""));
  const auto number = [&](std::string_view key, std::uint64_t fallback) {
    const gguf::Value* value = model.find(fmt::format("{}.{}", architecture, key));
    if (value == nullptr || value->type == gguf::ValueType::array) return fallback;
    return std::max<std::uint64_t>(1, model.get_uint(value->key).value_or(fallback));
  };
  const std::uint64_t heads = number("attention.head_count", 1);
  ModelOutline outline;
  outline.layers =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(number("block_count", 1), 1U << 20));
  outline.experts =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(number("expert_count", 1), 1U << 20));
  outline.query_groups =
      static_cast<std::uint32_t>(heads / number("attention.head_count_kv", heads));
  outline.tied_head = model.find_tensor("output.weight") == nullptr;
  return outline;
}

ElementType TypeChooser::choose(const gguf::Tensor& tensor) const {
  const bool is_weight = tensor.name.ends_with(".weight");
  const bool is_router = tensor.name.find("ffn_gate_inp") != std::string_view::npos;
  if (tensor.rank < 2 || !is_weight || is_router || !traits(tensor.type).supported) {
    return tensor.type;
  }
  return fitting(recipe_.mix ? mixed(tensor.name) : recipe_.type, tensor.shape[0]);
}

ElementType TypeChooser::mixed(std::string_view name) const {
  const Place place = place_of(name);
  const std::uint32_t layer = place.layer.value_or(0);
  if (name == "output.weight" || (name == "token_embd.weight" && model_.tied_head)) {
    return ElementType::q6_k;
  }
  // A matrix of queries, keys and values counts as one of values.
  const bool is_value = place.role == "attn_v.weight" || place.role == "attn_qkv.weight";
  const bool is_down = place.role.starts_with("ffn_down");  // of experts too
  const bool is_output = place.role == "attn_output.weight";
  if (model_.experts == kMixtralExperts) {
    if (is_value || place.role == "attn_k.weight") return ElementType::q8_0;
    if (is_output) return ElementType::q5_k;
  }
  switch (recipe_.type) {
    case ElementType::q2_k:
      if (is_value) return model_.query_groups >= 4 ? ElementType::q4_k : ElementType::q3_k;
      return is_down || is_output ? ElementType::q3_k : recipe_.type;
    case ElementType::q3_k:
      if (is_value) return layer < 2 ? ElementType::q5_k : ElementType::q4_k;
      if (is_down && layer < model_.layers / 16) return ElementType::q5_k;
      return is_down || is_output ? ElementType::q4_k : recipe_.type;
    default:
      return (is_value || is_down) && is_sensitive(layer, model_.layers) ? ElementType::q6_k
                                                                         : recipe_.type;
  }
}

}  // namespace edgerunner
