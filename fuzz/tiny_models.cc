#include "tiny_models.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "gguf/writer.h"

namespace edgerunner::fuzz {
namespace {

using gguf::Writer;
using Shape = std::vector<std::uint64_t>;

struct TinyModel {
  std::string architecture;
  ElementType type = ElementType::f32;
  std::uint32_t dim = 4;
  std::uint32_t heads = 2;
  std::uint32_t kv_heads = 1;
  std::uint32_t head_dim = 2;
  std::uint32_t ffn_dim = 4;
  bool qkv_bias = false;
  bool qk_norm = false;
  bool own_head = false;
};

constexpr std::uint32_t kVocabulary = 12;

void set_architecture(Writer& writer, const TinyModel& model) {
  const auto key = [&](const char* name) { return fmt::format("{}.{}", model.architecture, name); };
  writer.set("general.architecture", model.architecture);
  writer.set("general.name", std::string("tiny"));
  writer.set(key("context_length"), std::uint32_t{64});
  writer.set(key("embedding_length"), model.dim);
  writer.set(key("block_count"), std::uint32_t{1});
  writer.set(key("feed_forward_length"), model.ffn_dim);
  writer.set(key("attention.head_count"), model.heads);
  writer.set(key("attention.head_count_kv"), model.kv_heads);
  writer.set(key("attention.key_length"), model.head_dim);
  writer.set(key("attention.layer_norm_rms_epsilon"), 1e-5F);
  writer.set(key("rope.freq_base"), 10000.0F);
  writer.set(key("rope.dimension_count"), model.head_dim);
}

// SentencePiece: unknown, control, byte and ordinary pieces with scores.
void set_sentencepiece(Writer& writer) {
  writer.set("tokenizer.ggml.model", std::string("llama"));
  writer.set("tokenizer.ggml.pre", std::string("default"));
  writer.set("tokenizer.ggml.tokens", std::vector<std::string>{"<unk>", "<s>", "</s>", "<0x61>",
                                                               "a", "b", "ab", "\xE2\x96\x81",
                                                               "\xE2\x96\x81"
                                                               "a",
                                                               "c", "abc", "<user>"});
  writer.set("tokenizer.ggml.scores",
             std::vector<float>{0, 0, 0, 0, -1, -2, -3, -4, -5, -6, -7, -1000});
  writer.set("tokenizer.ggml.token_type",
             std::vector<std::int32_t>{2, 3, 3, 6, 1, 1, 1, 1, 1, 1, 1, 4});
  writer.set("tokenizer.ggml.bos_token_id", std::uint32_t{1});
  writer.set("tokenizer.ggml.eos_token_id", std::uint32_t{2});
  writer.set("tokenizer.ggml.unknown_token_id", std::uint32_t{0});
  writer.set("tokenizer.ggml.add_bos_token", true);
  writer.set("tokenizer.ggml.add_space_prefix", true);
}

// A character map of SentencePiece that makes "c" an "a": a tree of units in which 'c' is a child
// of the first and has a leaf beside it, and the texts.
std::vector<std::uint8_t> tiny_charsmap() {
  constexpr std::uint32_t kUnits = 256;
  std::vector<std::uint32_t> numbers(1 + kUnits);
  numbers[0] = kUnits * sizeof(std::uint32_t);
  numbers[1 + 'c'] = 'c' | 1U << 8 | 1U << 10;
  numbers[1 + ('c' ^ 1)] = 1U << 31;
  std::vector<std::uint8_t> bytes;
  for (const std::uint32_t number : numbers) {
    for (int shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<std::uint8_t>(number >> shift));
    }
  }
  bytes.insert(bytes.end(), {'a', 0});
  return bytes;
}

void set_unigram(Writer& writer) {
  writer.set("tokenizer.ggml.model", std::string("t5"));
  writer.set("tokenizer.ggml.tokens",
             std::vector<std::string>{"<pad>", "</s>", "<unk>", "\xE2\x96\x81", "a", "b", "ab",
                                      "\xE2\x96\x81"
                                      "ab",
                                      "abd", "<0x61>", "<user>", "d"});
  writer.set("tokenizer.ggml.scores",
             std::vector<float>{0, 0, 0, -2, -3, -3, -4, -4.5F, -5, 0, 0, -6});
  writer.set("tokenizer.ggml.token_type",
             std::vector<std::int32_t>{3, 3, 2, 1, 1, 1, 1, 1, 1, 6, 4, 1});
  writer.set("tokenizer.ggml.eos_token_id", std::uint32_t{1});
  writer.set("tokenizer.ggml.unknown_token_id", std::uint32_t{2});
  writer.set("tokenizer.ggml.add_space_prefix", true);
  writer.set("tokenizer.ggml.remove_extra_whitespaces", true);
  writer.set("tokenizer.ggml.precompiled_charsmap", tiny_charsmap());
}

void set_wordpiece(Writer& writer) {
  writer.set("tokenizer.ggml.model", std::string("bert"));
  writer.set("tokenizer.ggml.tokens", std::vector<std::string>{"[PAD]", "[UNK]", "[CLS]", "[SEP]",
                                                               "\xE2\x96\x81"
                                                               "a",
                                                               "\xE2\x96\x81"
                                                               "ab",
                                                               "b", "cd", "c",
                                                               "\xE2\x96\x81"
                                                               "caf",
                                                               "e", "<user>"});
  writer.set("tokenizer.ggml.token_type",
             std::vector<std::int32_t>{3, 2, 3, 3, 1, 1, 1, 1, 1, 1, 1, 4});
  writer.set("tokenizer.ggml.cls_token_id", std::uint32_t{2});
  writer.set("tokenizer.ggml.seperator_token_id", std::uint32_t{3});
  writer.set("tokenizer.ggml.unknown_token_id", std::uint32_t{1});
}

void set_byte_pairs(Writer& writer, const std::string& pre) {
  writer.set("tokenizer.ggml.model", std::string("gpt2"));
  writer.set("tokenizer.ggml.pre", pre);
  writer.set("tokenizer.ggml.tokens",
             std::vector<std::string>{"a", "b", "c", "d", "\xC4\xA0", "ab",
                                      "\xC4\xA0"
                                      "a",
                                      "cd", "abcd", "<|end|>", "<user>", "e"});
  writer.set("tokenizer.ggml.token_type",
             std::vector<std::int32_t>{1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 4, 1});
  writer.set("tokenizer.ggml.merges",
             std::vector<std::string>{"a b", "\xC4\xA0 a", "c d", "ab cd"});
  writer.set("tokenizer.ggml.eos_token_id", std::uint32_t{9});
  writer.set("tokenizer.ggml.padding_token_id", std::uint32_t{9});
  writer.set("tokenizer.ggml.add_bos_token", false);
}

struct Declared {
  std::string name;
  ElementType type;
  Shape shape;
};

// Each with bytes that make finite numbers of every type.
void write_all(Writer& writer, const std::vector<Declared>& tensors) {
  for (const Declared& tensor : tensors) writer.declare(tensor.name, tensor.type, tensor.shape);
  for (const Declared& tensor : tensors) {
    std::uint64_t elements = 1;
    for (const std::uint64_t dimension : tensor.shape) elements *= dimension;
    std::vector<std::byte> data(row_bytes(tensor.type, elements));
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i % 4 * 16);
    writer.write(tensor.name, data);
  }
}

void write_tensors(Writer& writer, const TinyModel& model) {
  std::vector<Declared> tensors;
  const auto matrix = [&](const std::string& name, std::uint64_t rows, std::uint64_t cols) {
    tensors.push_back({name, model.type, {cols, rows}});
  };
  const auto vector = [&](const std::string& name, std::uint64_t length) {
    tensors.push_back({name, ElementType::f32, {length}});
  };
  const std::uint32_t q_dim = model.heads * model.head_dim;
  const std::uint32_t kv_dim = model.kv_heads * model.head_dim;
  matrix("token_embd.weight", kVocabulary, model.dim);
  vector("blk.0.attn_norm.weight", model.dim);
  matrix("blk.0.attn_q.weight", q_dim, model.dim);
  matrix("blk.0.attn_k.weight", kv_dim, model.dim);
  matrix("blk.0.attn_v.weight", kv_dim, model.dim);
  matrix("blk.0.attn_output.weight", model.dim, q_dim);
  if (model.qkv_bias) {
    vector("blk.0.attn_q.bias", q_dim);
    vector("blk.0.attn_k.bias", kv_dim);
    vector("blk.0.attn_v.bias", kv_dim);
  }
  if (model.qk_norm) {
    vector("blk.0.attn_q_norm.weight", model.head_dim);
    vector("blk.0.attn_k_norm.weight", model.head_dim);
  }
  vector("blk.0.ffn_norm.weight", model.dim);
  matrix("blk.0.ffn_gate.weight", model.ffn_dim, model.dim);
  matrix("blk.0.ffn_up.weight", model.ffn_dim, model.dim);
  matrix("blk.0.ffn_down.weight", model.dim, model.ffn_dim);
  vector("output_norm.weight", model.dim);
  if (model.own_head) matrix("output.weight", kVocabulary, model.dim);
  write_all(writer, tensors);
}

// The pair of a matrix of `rows` by `cols`.
void add_pair(std::vector<Declared>& tensors, const std::string& name, ElementType type,
              std::uint64_t rows, std::uint64_t cols) {
  constexpr std::uint64_t kRank = 2;
  tensors.push_back({name + ".weight.lora_a", type, {cols, kRank}});
  tensors.push_back({name + ".weight.lora_b", type, {kRank, rows}});
}

}  // namespace

void write_tiny_models(const std::filesystem::path& folder) {
  const auto write = [&](const char* name, const TinyModel& model, auto set_more) {
    Writer writer(folder / name);
    writer.set("general.alignment", std::uint32_t{8});
    set_architecture(writer, model);
    set_more(writer);
    write_tensors(writer, model);
    writer.finish();
  };
  write("llama-yarn.gguf", {.architecture = "llama", .own_head = true}, [](Writer& writer) {
    set_sentencepiece(writer);
    writer.set("llama.rope.scaling.type", std::string("yarn"));
    writer.set("llama.rope.scaling.factor", 4.0F);
    writer.set("llama.rope.scaling.original_context_length", std::uint32_t{16});
  });
  write("llama-linear.gguf", {.architecture = "llama", .type = ElementType::bf16},
        [](Writer& writer) {
          set_byte_pairs(writer, "llama-bpe");
          writer.set("llama.rope.scaling.type", std::string("linear"));
          writer.set("llama.rope.scaling.factor", 2.0F);
        });
  write("mistral-window.gguf", {.architecture = "llama", .type = ElementType::f16},
        [](Writer& writer) {
          set_byte_pairs(writer, "tekken");
          writer.set("llama.attention.sliding_window", std::uint32_t{8});
        });
  write("qwen2.gguf", {.architecture = "qwen2", .qkv_bias = true},
        [](Writer& writer) { set_byte_pairs(writer, "qwen2"); });
  write("qwen3-q8_0.gguf",
        {.architecture = "qwen3",
         .type = ElementType::q8_0,
         .dim = 32,
         .heads = 1,
         .kv_heads = 1,
         .head_dim = 32,
         .ffn_dim = 32,
         .qk_norm = true},
        [](Writer& writer) { set_byte_pairs(writer, "gpt-2"); });
  write("llama-unigram.gguf", {.architecture = "llama"}, set_unigram);
  write("llama-wordpiece.gguf", {.architecture = "llama"}, set_wordpiece);
}

void write_tiny_adapters(const std::filesystem::path& folder) {
  const auto write = [&](const char* name, float alpha, const std::vector<Declared>& tensors) {
    Writer writer(folder / name);
    writer.set("general.alignment", std::uint32_t{8});
    writer.set("general.type", std::string("adapter"));
    writer.set("general.architecture", std::string("llama"));
    writer.set("general.name", std::string("tiny"));
    writer.set("adapter.type", std::string("lora"));
    if (alpha > 0) writer.set("adapter.lora.alpha", alpha);
    write_all(writer, tensors);
    writer.finish();
  };
  const TinyModel model{.architecture = "llama"};
  const std::uint32_t kv_dim = model.kv_heads * model.head_dim;
  std::vector<Declared> all;
  for (const char* name : {"attn_q", "attn_output", "ffn_gate", "ffn_up", "ffn_down"}) {
    add_pair(all, fmt::format("blk.0.{}", name), ElementType::f32, model.dim, model.dim);
  }
  add_pair(all, "blk.0.attn_k", ElementType::f32, kv_dim, model.dim);
  add_pair(all, "blk.0.attn_v", ElementType::f32, kv_dim, model.dim);
  add_pair(all, "output", ElementType::f32, kVocabulary, model.dim);
  // Of an embedding, A is looked up: it has the rows of the vocabulary.
  all.push_back({"token_embd.weight.lora_a", ElementType::f32, {2, kVocabulary}});
  all.push_back({"token_embd.weight.lora_b", ElementType::f32, {2, model.dim}});
  write("all.gguf", 3.0F, all);

  std::vector<Declared> halves;
  add_pair(halves, "blk.0.attn_q", ElementType::f16, model.dim, model.dim);
  add_pair(halves, "blk.0.ffn_down", ElementType::bf16, model.dim, model.ffn_dim);
  write("halves-without-alpha.gguf", 0, halves);
}

}  // namespace edgerunner::fuzz
