#include "hugging_face_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <map>

#include "support/shared_data.h"

namespace edgerunner::test {
namespace {

using Names = std::map<std::string, std::string>;

Names module_names(const std::string& architecture) {
  Names names = {{"attn_q", "self_attn.q_proj"},
                 {"attn_k", "self_attn.k_proj"},
                 {"attn_v", "self_attn.v_proj"},
                 {"attn_qkv", "self_attn.qkv_proj"},
                 {"attn_output", "self_attn.o_proj"},
                 {"attn_q_norm", "self_attn.q_norm"},
                 {"attn_k_norm", "self_attn.k_norm"},
                 {"attn_norm", "input_layernorm"},
                 {"ffn_norm", "post_attention_layernorm"},
                 {"ffn_gate", "mlp.gate_proj"},
                 {"ffn_up", architecture == "phi3" ? "mlp.gate_up_proj" : "mlp.up_proj"},
                 {"ffn_down", "mlp.down_proj"},
                 {"ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
                 {"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
                 {"ffn_up_shexp", "mlp.shared_expert.up_proj"},
                 {"ffn_down_shexp", "mlp.shared_expert.down_proj"},
                 {"ffn_gate_inp", "mlp.gate"},
                 {"ffn_gate_exps", "mlp.experts.{}.gate_proj"},
                 {"ffn_up_exps", "mlp.experts.{}.up_proj"},
                 {"ffn_down_exps", "mlp.experts.{}.down_proj"}};
  if (architecture == "llama") {
    names["ffn_gate_inp"] = "block_sparse_moe.gate";
    names["ffn_gate_exps"] = "block_sparse_moe.experts.{}.w1";
    names["ffn_up_exps"] = "block_sparse_moe.experts.{}.w3";
    names["ffn_down_exps"] = "block_sparse_moe.experts.{}.w2";
  }
  if (architecture == "olmo2" || architecture.starts_with("gemma")) {
    names["ffn_norm"] = "pre_feedforward_layernorm";
    names["post_attention_norm"] = "post_attention_layernorm";
    names["post_ffw_norm"] = "post_feedforward_layernorm";
  }
  return names;
}

// Neighbours in a head become halves of it.
void part_pairs(FolderTensor& tensor, std::uint64_t heads) {
  const std::uint64_t rows = tensor.shape[0];
  const std::uint64_t head = rows / heads;
  const std::size_t bytes = tensor.bytes.size() / rows;
  const std::vector<std::byte> from = tensor.bytes;
  for (std::uint64_t row = 0; row < rows; ++row) {
    const std::uint64_t r = row % head;
    const std::uint64_t there = row - r + r / 2 + (r % 2) * (head / 2);
    std::memcpy(tensor.bytes.data() + there * bytes, from.data() + row * bytes, bytes);
  }
}

void subtract_one(FolderTensor& tensor) {
  for (std::size_t at = 0; at < tensor.bytes.size(); at += sizeof(float)) {
    float value;
    std::memcpy(&value, &tensor.bytes[at], sizeof(value));
    value -= 1;
    std::memcpy(&tensor.bytes[at], &value, sizeof(value));
  }
}

nlohmann::json added_tokens(const gguf::File& file, std::int64_t kind, bool special) {
  const auto tokens = file.get_strings("tokenizer.ggml.tokens").value();
  const auto kinds = file.get_ints("tokenizer.ggml.token_type").value();
  nlohmann::json list = nlohmann::json::array();
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (kinds[id] != kind) continue;
    list.push_back({{"id", id}, {"content", std::string(tokens[id])}, {"special", special}});
  }
  return list;
}

nlohmann::json all_added_tokens(const gguf::File& file) {
  nlohmann::json list = added_tokens(file, 3, true);
  for (auto& token : added_tokens(file, 4, false)) list.push_back(token);
  return list;
}

}  // namespace

FolderTensors folder_tensors(const gguf::File& file) {
  const std::string architecture(file.require_string("general.architecture"));
  const Names modules = module_names(architecture);
  const bool interleaved =
      architecture == "llama" || architecture == "granite" || architecture == "smollm3";
  const auto heads = file.require_uint(architecture + ".attention.head_count");
  const auto kv_heads = file.require_uint(architecture + ".attention.head_count_kv");
  constexpr std::array kDtypes = {"F32", "F16"};
  FolderTensors result;
  for (const gguf::Tensor& tensor : file.tensors()) {
    const std::string name(tensor.name);
    if (name.starts_with("rope_")) continue;  // config.json has them
    FolderTensor out{
        tensor.type == ElementType::bf16 ? "BF16" : kDtypes.at(std::size_t(tensor.type)),
        {},
        {tensor.data.begin(), tensor.data.end()}};
    for (std::uint32_t i = tensor.rank; i-- > 0;) out.shape.push_back(tensor.shape[i]);
    if (architecture.starts_with("gemma") && name.ends_with("_norm.weight")) subtract_one(out);
    if (!name.starts_with("blk.")) {
      result[name == "token_embd.weight"    ? "model.embed_tokens.weight"
             : name == "output_norm.weight" ? "model.norm.weight"
                                            : "lm_head.weight"] = out;
      continue;
    }
    const std::size_t layer_end = name.find('.', 4);
    const std::size_t kind = name.rfind('.');
    const std::string role = name.substr(layer_end + 1, kind - layer_end - 1);
    const std::string full = fmt::format("model.layers.{}.{}{}", name.substr(4, layer_end - 4),
                                         modules.at(role), name.substr(kind));
    if (interleaved && role == "attn_q") part_pairs(out, heads);
    if (interleaved && role == "attn_k") part_pairs(out, kv_heads);
    if (role == "ffn_gate_inp_shexp") out.shape.insert(out.shape.begin(), 1);
    if (!role.ends_with("_exps")) {
      result[full] = out;
      continue;
    }
    const std::size_t bytes = out.bytes.size() / out.shape[0];
    for (std::uint64_t expert = 0; expert < out.shape[0]; ++expert) {
      const auto begin = out.bytes.begin() + static_cast<std::ptrdiff_t>(expert * bytes);
      result[fmt::format(fmt::runtime(full), expert)] = {
          out.dtype,
          {out.shape[1], out.shape[2]},
          {begin, begin + static_cast<std::ptrdiff_t>(bytes)}};
    }
  }
  return result;
}

nlohmann::json fixture_config(const std::string& name) {
  std::ifstream stream(shared_dir() / "fixtures" / "models" / (name + ".json"));
  const auto fixture = nlohmann::json::parse(stream);
  nlohmann::json config = fixture.at("config");
  config["architectures"] = {fixture.at("hf_model")};
  nlohmann::json rope = fixture.at("rope");
  if (rope.contains("local_theta")) {
    const nlohmann::json local = {{"rope_type", "default"}, {"rope_theta", rope["local_theta"]}};
    rope.erase("local_theta");
    rope = {{"full_attention", rope}, {"sliding_attention", local}};
  }
  config["rope_parameters"] = rope;
  return config;
}

nlohmann::json sentencepiece_json(const gguf::File& file) {
  const auto tokens = file.get_strings("tokenizer.ggml.tokens").value();
  const auto kinds = file.get_ints("tokenizer.ggml.token_type").value();
  const auto scores = file.get_floats("tokenizer.ggml.scores").value();
  std::map<std::string, std::size_t> ids;
  nlohmann::json vocab;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    vocab[std::string(tokens[id])] = id;
    if (kinds[id] == 1) ids[std::string(tokens[id])] = id;
  }
  struct Split {
    float score;
    std::size_t left, right, whole;
  };
  std::vector<Split> splits;
  for (const auto& [text, id] : ids) {
    for (std::size_t at = 1; at < text.size(); ++at) {
      const auto left = ids.find(text.substr(0, at));
      if (left == ids.end()) continue;
      const auto right = ids.find(text.substr(at));
      if (right != ids.end()) splits.push_back({scores[id], left->second, right->second, id});
    }
  }
  std::sort(splits.begin(), splits.end(), [](const Split& a, const Split& b) {
    if (a.score != b.score) return a.score > b.score;
    return std::tie(a.whole, a.left, a.right) < std::tie(b.whole, b.left, b.right);
  });
  nlohmann::json merges = nlohmann::json::array();
  for (const Split& split : splits) {
    merges.push_back({std::string(tokens[split.left]), std::string(tokens[split.right])});
  }
  const bool prefix = file.get_bool("tokenizer.ggml.add_space_prefix").value_or(true);
  const nlohmann::json marks = {
      {"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\xE2\x96\x81"}};
  nlohmann::json normalizers = nlohmann::json::array();
  if (prefix) normalizers.push_back({{"type", "Prepend"}, {"prepend", "\xE2\x96\x81"}});
  normalizers.push_back(marks);
  return {{"added_tokens", all_added_tokens(file)},
          {"normalizer", {{"type", "Sequence"}, {"normalizers", normalizers}}},
          {"pre_tokenizer", nullptr},
          {"model",
           {{"type", "BPE"},
            {"unk_token", "<unk>"},
            {"byte_fallback", true},
            {"vocab", vocab},
            {"merges", merges}}}};
}

nlohmann::json byte_level_json(const gguf::File& file, const nlohmann::json& normalizer,
                               const nlohmann::json& pre_tokenizer) {
  const auto tokens = file.get_strings("tokenizer.ggml.tokens").value();
  const auto kinds = file.get_ints("tokenizer.ggml.token_type").value();
  nlohmann::json vocab;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (kinds[id] == 1) vocab[std::string(tokens[id])] = id;
  }
  nlohmann::json merges = nlohmann::json::array();
  const auto lines = file.get_strings("tokenizer.ggml.merges").value();
  for (const std::string_view merge : lines) {
    merges.push_back(std::string(merge));
  }
  return {{"added_tokens", all_added_tokens(file)},
          {"normalizer", normalizer},
          {"pre_tokenizer", pre_tokenizer},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}}}};
}

void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

void write_safetensors(const std::filesystem::path& path, const FolderTensors& tensors) {
  nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}};
  std::size_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    header[name] = {{"dtype", tensor.dtype},
                    {"shape", tensor.shape},
                    {"data_offsets", {offset, offset + tensor.bytes.size()}}};
    offset += tensor.bytes.size();
  }
  const std::string text = header.dump();
  const std::uint64_t length = text.size();
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&length), sizeof(length));
  out << text;
  for (const auto& [name, tensor] : tensors) {
    out.write(reinterpret_cast<const char*>(tensor.bytes.data()),
              static_cast<std::streamsize>(tensor.bytes.size()));
  }
}

void write_fixture_folder(const std::filesystem::path& folder, const std::string& name,
                          const gguf::File& file, std::size_t shards) {
  std::filesystem::create_directories(folder);
  write_text(folder / "config.json", fixture_config(name).dump());
  write_text(folder / "tokenizer.json", sentencepiece_json(file).dump());
  const FolderTensors tensors = folder_tensors(file);
  if (shards == 1) return write_safetensors(folder / "model.safetensors", tensors);
  std::vector<FolderTensors> parts(shards);
  nlohmann::json map;
  std::size_t next = 0;
  for (const auto& [tensor_name, tensor] : tensors) {
    const std::size_t part = next++ % shards;
    parts[part][tensor_name] = tensor;
    map[tensor_name] = fmt::format("model-{}.safetensors", part);
  }
  for (std::size_t i = 0; i < shards; ++i) {
    write_safetensors(folder / fmt::format("model-{}.safetensors", i), parts[i]);
  }
  write_text(folder / "model.safetensors.index.json", nlohmann::json{{"weight_map", map}}.dump());
}

}  // namespace edgerunner::test
