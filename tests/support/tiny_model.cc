#include "support/tiny_model.h"

#include <fmt/format.h>

#include <cmath>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "gguf/writer.h"

namespace edgerunner::test {
namespace {

constexpr std::uint32_t kDim = 64;
constexpr std::uint32_t kHeads = 4;
constexpr std::uint32_t kKvHeads = 2;
constexpr std::uint32_t kKvDim = kDim / kHeads * kKvHeads;
constexpr std::uint32_t kFfnDim = 128;
constexpr std::uint32_t kLayers = 2;

struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<std::int32_t> types;  // 1 normal, 2 unknown, 3 control, 6 byte

  void add(std::string token, std::int32_t type) {
    scores.push_back(-static_cast<float>(tokens.size()));
    tokens.push_back(std::move(token));
    types.push_back(type);
  }
};

Vocabulary make_vocabulary(const std::string& last_token) {
  Vocabulary vocabulary;
  vocabulary.add("<unk>", 2);
  vocabulary.add("<s>", 3);
  vocabulary.add("</s>", 3);
  for (int byte = 0; byte < 256; ++byte) vocabulary.add(fmt::format("<0x{:02X}>", byte), 6);
  vocabulary.add("\u2581", 1);
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    vocabulary.add(std::string(1, letter), 1);
    vocabulary.add("\u2581" + std::string(1, letter), 1);
  }
  for (const char* word : {"th", "he", "the", "\u2581the", "in", "an", "é"}) {
    vocabulary.add(word, 1);
  }
  vocabulary.add(last_token, 1);
  return vocabulary;
}

struct TensorShape {
  std::string name;
  std::vector<std::uint64_t> shape;  // fastest-varying first
};

std::vector<TensorShape> make_tensors(std::uint64_t vocab_size) {
  std::vector<TensorShape> tensors = {{"token_embd.weight", {kDim, vocab_size}},
                                      {"output_norm.weight", {kDim}}};
  for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
    const std::string prefix = fmt::format("blk.{}.", layer);
    tensors.push_back({prefix + "attn_norm.weight", {kDim}});
    tensors.push_back({prefix + "attn_q.weight", {kDim, kDim}});
    tensors.push_back({prefix + "attn_k.weight", {kDim, kKvDim}});
    tensors.push_back({prefix + "attn_v.weight", {kDim, kKvDim}});
    tensors.push_back({prefix + "attn_output.weight", {kDim, kDim}});
    tensors.push_back({prefix + "ffn_norm.weight", {kDim}});
    tensors.push_back({prefix + "ffn_gate.weight", {kDim, kFfnDim}});
    tensors.push_back({prefix + "ffn_up.weight", {kDim, kFfnDim}});
    tensors.push_back({prefix + "ffn_down.weight", {kFfnDim, kDim}});
  }
  return tensors;
}

// Uniform numbers made from the generator's own bits, the same with every standard library.
std::vector<float> make_weights(const TensorShape& tensor, std::mt19937& random) {
  std::uint64_t count = 1;
  for (const std::uint64_t extent : tensor.shape) count *= extent;
  std::vector<float> weights(count, 1.0F);  // a norm's
  if (tensor.shape.size() == 1) return weights;
  const float scale = 3.0F / std::sqrt(static_cast<float>(tensor.shape[0]));
  for (float& weight : weights) {
    weight = (static_cast<float>(random() >> 8) * 0x1p-23F - 1.0F) * scale;
  }
  return weights;
}

}  // namespace

void write_tiny_model(const std::filesystem::path& path, const TinyModelOptions& options) {
  const Vocabulary vocabulary = make_vocabulary(options.last_token);
  gguf::Writer writer(path);
  writer.set("general.architecture", std::string("llama"));
  writer.set("general.name", std::string("tiny"));
  writer.set("llama.context_length", options.context);
  writer.set("llama.embedding_length", kDim);
  writer.set("llama.block_count", kLayers);
  writer.set("llama.feed_forward_length", kFfnDim);
  writer.set("llama.attention.head_count", kHeads);
  writer.set("llama.attention.head_count_kv", kKvHeads);
  writer.set("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  if (options.sliding_window > 0) {
    writer.set("llama.attention.sliding_window", options.sliding_window);
  }
  if (options.tokenizer) {
    writer.set("tokenizer.ggml.model", std::string("llama"));
    writer.set("tokenizer.ggml.tokens", vocabulary.tokens);
    writer.set("tokenizer.ggml.scores", vocabulary.scores);
    writer.set("tokenizer.ggml.token_type", vocabulary.types);
    writer.set("tokenizer.ggml.bos_token_id", std::uint32_t{1});
    writer.set("tokenizer.ggml.eos_token_id", std::uint32_t{2});
    writer.set("tokenizer.ggml.unknown_token_id", std::uint32_t{0});
  }
  if (!options.chat_template.empty()) {
    writer.set("tokenizer.chat_template", options.chat_template);
  }
  const auto tensors = make_tensors(vocabulary.tokens.size());
  for (const TensorShape& tensor : tensors) {
    writer.declare(tensor.name, ElementType::f32, tensor.shape);
  }
  std::mt19937 random(options.seed);
  for (const TensorShape& tensor : tensors) {
    const std::vector<float> weights = make_weights(tensor, random);
    writer.write(tensor.name, std::as_bytes(std::span(weights)));
  }
  writer.finish();
}

}  // namespace edgerunner::test
