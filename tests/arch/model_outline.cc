#include "arch/model_outline.h"

#include <fmt/format.h>

#include "gguf/writer.h"

namespace edgerunner::test {

void ModelOutline::write(const std::filesystem::path& path) const {
  gguf::Writer writer(path);
  for (const auto& [key, value] : metadata) writer.set(key, value);
  for (const auto& [name, tensor] : tensors) writer.declare(name, tensor.type, tensor.shape);
  for (const auto& [name, tensor] : tensors) {
    std::size_t rows = 1;
    for (std::size_t i = 1; i < tensor.shape.size(); ++i) rows *= tensor.shape[i];
    writer.write(name, std::vector<std::byte>(rows * row_bytes(tensor.type, tensor.shape[0])));
  }
  writer.finish();
}

ModelOutline model_outline(const std::string& architecture) {
  ModelOutline outline;
  const std::string prefix = architecture + ".";
  outline.metadata = {{"general.architecture", architecture},
                      {prefix + "context_length", 128U},
                      {prefix + "embedding_length", 32U},
                      {prefix + "block_count", 2U},
                      {prefix + "feed_forward_length", 48U},
                      {prefix + "attention.head_count", 4U},
                      {prefix + "attention.head_count_kv", 2U},
                      {prefix + "attention.layer_norm_rms_epsilon", 1e-5F}};
  const auto f32 = ElementType::f32;
  outline.tensors = {{"token_embd.weight", {f32, {32, 40}}}, {"output_norm.weight", {f32, {32}}}};
  for (int layer = 0; layer < 2; ++layer) {
    const auto add = [&](const char* role, std::vector<std::uint64_t> shape) {
      outline.tensors[fmt::format("blk.{}.{}", layer, role)] = {f32, std::move(shape)};
    };
    add("attn_norm.weight", {32});
    add("attn_q.weight", {32, 32});
    add("attn_k.weight", {32, 16});
    add("attn_v.weight", {32, 16});
    add("attn_output.weight", {32, 32});
    add("ffn_norm.weight", {32});
    add("ffn_gate.weight", {32, 48});
    add("ffn_up.weight", {32, 48});
    add("ffn_down.weight", {48, 32});
    if (architecture == "qwen3") {
      add("attn_q_norm.weight", {8});
      add("attn_k_norm.weight", {8});
    }
  }
  return outline;
}

}  // namespace edgerunner::test
