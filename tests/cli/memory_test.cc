// How much memory the program takes at its peak: weights stay in the mapped file.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <random>
#include <vector>

#include "gguf/writer.h"
#include "program_test.h"
#include "tensor/quantize.h"

namespace edgerunner::test {
namespace {

constexpr std::uint32_t kDim = 1024;
constexpr std::uint32_t kKvDim = 256;
constexpr std::uint32_t kFfnDim = 4096;
constexpr std::uint32_t kLayers = 8;
constexpr std::uint32_t kVocab = 2048;
constexpr std::uint32_t kContext = 1024;

// Writes weights that are one random row over and over: only their place matters here.
class RowWriter {
 public:
  explicit RowWriter(const std::filesystem::path& path) : writer_(path) {
    writer_.set("general.architecture", std::string("llama"));
    writer_.set("llama.context_length", kContext);
    writer_.set("llama.embedding_length", kDim);
    writer_.set("llama.block_count", kLayers);
    writer_.set("llama.feed_forward_length", kFfnDim);
    writer_.set("llama.attention.head_count", std::uint32_t{16});
    writer_.set("llama.attention.head_count_kv", std::uint32_t{4});
    writer_.set("llama.attention.layer_norm_rms_epsilon", 1e-5F);
    writer_.set("llama.rope.freq_base", 10000.0F);
    writer_.set("llama.vocab_size", kVocab);
  }

  void add(const std::string& name, ElementType type, std::uint64_t cols, std::uint64_t rows) {
    const std::uint64_t shape[] = {cols, rows};
    writer_.declare(name, type, std::span(shape, rows == 1 ? 1 : 2));
    tensors_.push_back({name, type, cols, rows});
  }

  void finish() {
    std::mt19937 random(1);
    for (const Tensor& tensor : tensors_) {
      std::vector<float> values(tensor.cols, 1.0F);
      std::normal_distribution<float> normal(0.0F,
                                             1.0F / std::sqrt(static_cast<float>(tensor.cols)));
      if (tensor.rows > 1) {
        for (float& value : values) value = normal(random);
      }
      std::vector<std::byte> row(row_bytes(tensor.type, tensor.cols));
      quantize(tensor.type, values, row);
      for (std::uint64_t i = 0; i < tensor.rows; ++i) writer_.write(tensor.name, row);
    }
    writer_.finish();
  }

 private:
  struct Tensor {
    std::string name;
    ElementType type;
    std::uint64_t cols;
    std::uint64_t rows;
  };
  gguf::Writer writer_;
  std::vector<Tensor> tensors_;
};

// About 145 MB, in the formats that are unpacked, rounded and used as they are.
void write_large_model(const std::filesystem::path& path) {
  RowWriter writer(path);
  writer.add("token_embd.weight", ElementType::q8_0, kDim, kVocab);
  writer.add("output_norm.weight", ElementType::f32, kDim, 1);
  for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
    const ElementType types[] = {ElementType::q8_0, ElementType::f16, ElementType::q4_0,
                                 ElementType::q8_0};
    const ElementType type = types[layer % 4];
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    writer.add(prefix + "attn_norm.weight", ElementType::f32, kDim, 1);
    writer.add(prefix + "attn_q.weight", type, kDim, kDim);
    writer.add(prefix + "attn_k.weight", type, kDim, kKvDim);
    writer.add(prefix + "attn_v.weight", type, kDim, kKvDim);
    writer.add(prefix + "attn_output.weight", type, kDim, kDim);
    writer.add(prefix + "ffn_norm.weight", ElementType::f32, kDim, 1);
    writer.add(prefix + "ffn_gate.weight", type, kDim, kFfnDim);
    writer.add(prefix + "ffn_up.weight", type, kDim, kFfnDim);
    writer.add(prefix + "ffn_down.weight", type, kFfnDim, kDim);
  }
  writer.finish();
}

TEST(Memory, StaysWithinFileAndCacheAnd100MB) {
  const TemporaryFolder folder;
  const std::string model = folder / "large.gguf";
  write_large_model(model);
  std::string prompt = "1";
  for (int id = 2; id <= 300; ++id) {
    prompt += ',';
    prompt += std::to_string(id);
  }
  const ProgramRun info =
      run_program({"info", model, "--json", "--context", std::to_string(kContext)});
  ASSERT_EQ(info.status, 0) << info.err;
  const nlohmann::json memory = nlohmann::json::parse(info.out)["memory"].back();
  const auto file = std::filesystem::file_size(model);
  const auto cache = memory["cache_bytes"].get<std::uint64_t>();
  constexpr std::uint64_t kAllowance = 100'000'000;
  ASSERT_GT(file, cache + kAllowance) << "a copy of the weights would not be noticed";

  const ProgramRun run = run_program({"generate", model, "--ids", prompt, "--max-tokens", "4",
                                      "--context", std::to_string(kContext), "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_LE(run.peak_bytes, file + cache + kAllowance);
  EXPECT_GT(run.peak_bytes, file / 2) << "the weights have been read";
}

}  // namespace
}  // namespace edgerunner::test
