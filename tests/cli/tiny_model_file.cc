#include "tiny_model_file.h"

#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "gguf/writer.h"

namespace edgerunner::test {
namespace {

constexpr std::uint32_t kDim = 32;
constexpr std::uint32_t kFfnDim = 64;
constexpr std::uint32_t kHeads = 4;
constexpr std::uint32_t kKvHeads = 2;
constexpr std::uint32_t kLayers = 2;
constexpr std::int32_t kNormalToken = 1;
constexpr std::int32_t kControlToken = 3;

// The printable character that stands for a byte in GPT-2's vocabulary, as UTF-8.
std::string byte_character(unsigned byte) {
  const auto printable = [](unsigned b) {
    return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
  };
  unsigned code = byte;
  if (!printable(byte)) {
    code = 256;
    for (unsigned b = 0; b < byte; ++b) code += printable(b) ? 0 : 1;
  }
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

void set_vocabulary(gguf::Writer& writer) {
  std::vector<std::string> tokens = {"<|end|>", "<|mark|>"};
  std::vector<std::int32_t> types = {kControlToken, kControlToken};
  for (unsigned byte = 0; byte < 256; ++byte) tokens.push_back(byte_character(byte));
  tokens.emplace_back("he");
  types.resize(tokens.size(), kNormalToken);
  writer.set("tokenizer.ggml.model", std::string("gpt2"));
  writer.set("tokenizer.ggml.pre", std::string("gpt-2"));
  writer.set("tokenizer.ggml.tokens", tokens);
  writer.set("tokenizer.ggml.token_type", types);
  writer.set("tokenizer.ggml.merges", std::vector<std::string>{"h e"});
  writer.set("tokenizer.ggml.eos_token_id", std::uint32_t{kTinyEos});
}

struct Declared {
  std::string name;
  std::vector<std::uint64_t> shape;
};

std::vector<Declared> tensor_list() {
  constexpr std::uint64_t kKvDim = std::uint64_t{kDim} / kHeads * kKvHeads;
  std::vector<Declared> list = {{"token_embd.weight", {kDim, kTinyVocab}},
                                {"output_norm.weight", {kDim}}};
  for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    list.push_back({prefix + "attn_norm.weight", {kDim}});
    list.push_back({prefix + "attn_q.weight", {kDim, kDim}});
    list.push_back({prefix + "attn_k.weight", {kDim, kKvDim}});
    list.push_back({prefix + "attn_v.weight", {kDim, kKvDim}});
    list.push_back({prefix + "attn_output.weight", {kDim, kDim}});
    list.push_back({prefix + "ffn_norm.weight", {kDim}});
    list.push_back({prefix + "ffn_gate.weight", {kDim, kFfnDim}});
    list.push_back({prefix + "ffn_up.weight", {kDim, kFfnDim}});
    list.push_back({prefix + "ffn_down.weight", {kFfnDim, kDim}});
  }
  return list;
}

void write_tensor(gguf::Writer& writer, const Declared& tensor, std::mt19937& random) {
  const bool norm = tensor.shape.size() == 1;
  std::vector<float> values(tensor.shape[0] * (norm ? 1 : tensor.shape[1]));
  const float scale = 1.0F / std::sqrt(static_cast<float>(tensor.shape[0]));
  for (float& value : values) {
    const float unit = static_cast<float>(random() >> 8) * 0x1p-24F;  // [0, 1)
    value = norm ? 1.0F : (unit * 2.0F - 1.0F) * 3.0F * scale;
  }
  writer.write(tensor.name, std::as_bytes(std::span(values)));
}

}  // namespace

void write_tiny_model(const std::filesystem::path& path, const TinyModelFile& model) {
  gguf::Writer writer(path);
  const std::string prefix = model.architecture + ".";
  writer.set("general.architecture", model.architecture);
  writer.set("general.name", std::string("tiny"));
  writer.set(prefix + "context_length", model.context);
  writer.set(prefix + "embedding_length", kDim);
  writer.set(prefix + "block_count", kLayers);
  writer.set(prefix + "feed_forward_length", kFfnDim);
  writer.set(prefix + "attention.head_count", kHeads);
  writer.set(prefix + "attention.head_count_kv", kKvHeads);
  writer.set(prefix + "attention.layer_norm_rms_epsilon", 1e-5F);
  writer.set(prefix + "rope.freq_base", 10000.0F);
  set_vocabulary(writer);
  if (!model.chat_template.empty()) writer.set("tokenizer.chat_template", model.chat_template);
  if (model.tensors) {
    const std::vector<Declared> list = tensor_list();
    for (const Declared& tensor : list) {
      writer.declare(tensor.name, ElementType::f32, tensor.shape);
    }
    std::mt19937 random(1);
    for (const Declared& tensor : list) write_tensor(writer, tensor, random);
  }
  writer.finish();
}

}  // namespace edgerunner::test
