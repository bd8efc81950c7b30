#include "quantize/quantize_file.h"

#include <gmock/gmock.h>

#include <fstream>
#include <random>

#include "gguf/writer.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "tensor/dequantize.h"
#include "tensor/quantize.h"

namespace edgerunner {
namespace {

constexpr std::uint64_t kCols = 256;
constexpr std::uint64_t kRows = 37;

class QuantizeFile : public ::testing::Test {
 protected:
  QuantizeFile() {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    for (float& value : values_) value = normal(random);
  }

  void write_model() {
    gguf::Writer writer(in_);
    writer.set("general.architecture", std::string("llama"));
    writer.set("llama.block_count", std::uint32_t{1});
    writer.set("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b"});
    const std::uint64_t shape[] = {kCols, kRows};
    const std::uint64_t length[] = {kCols};
    writer.declare("blk.0.attn_q.weight", ElementType::f32, shape);
    writer.declare("blk.0.attn_norm.weight", ElementType::f32, length);
    writer.write("blk.0.attn_q.weight", std::as_bytes(std::span(values_)));
    writer.write("blk.0.attn_norm.weight", std::as_bytes(std::span(values_).first(kCols)));
    writer.finish();
  }

  QuantizeReport run(std::string_view type, int threads = 2) {
    write_model();
    return quantize_file(gguf::File::open(in_), out_, find_recipe(type).value(),
                         {.threads = threads, .max_shard_bytes = 0, .progress = {}});
  }

  test::TemporaryFolder folder_;
  std::filesystem::path in_ = folder_ / "in.gguf";
  std::filesystem::path out_ = folder_ / "out.gguf";
  std::vector<float> values_ = std::vector<float>(kCols * kRows);
};

TEST_F(QuantizeFile, WritesEachRowAsTheQuantiserDoes) {
  for (const std::string_view type : {"Q8_0", "Q4_K", "BF16"}) {
    run(type);
    const gguf::File file = gguf::File::open(out_);
    const gguf::Tensor* tensor = file.find_tensor("blk.0.attn_q.weight");
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(tensor->type, find_recipe(type)->type);
    std::vector<std::byte> wanted(row_bytes(tensor->type, values_.size()));
    quantize(tensor->type, values_, wanted);
    EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), tensor->data.begin(), tensor->data.end()));
  }
}

TEST_F(QuantizeFile, KeepsMetadataVectorsAndOrder) {
  const QuantizeReport report = run("Q4_0");
  const gguf::File file = gguf::File::open(out_);
  EXPECT_EQ(file.get_strings("tokenizer.ggml.tokens")->size(), 2U);
  EXPECT_EQ(file.get_uint("general.file_type"), 2U);
  ASSERT_EQ(file.tensors().size(), 2U);
  EXPECT_EQ(file.tensors()[1].name, "blk.0.attn_norm.weight");
  EXPECT_EQ(file.tensors()[1].type, ElementType::f32);
  EXPECT_EQ(report.tensors.at(ElementType::q4_0), 1U);
  EXPECT_EQ(report.bytes_out, file.tensors()[0].data.size() + file.tensors()[1].data.size());
}

TEST_F(QuantizeFile, ThreadsDoNotChangeTheBytes) {
  const auto bytes = [&](int threads) {
    run("Q3_K", threads);
    std::ifstream stream(out_, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  EXPECT_EQ(bytes(1), bytes(3));
}

TEST_F(QuantizeFile, ABadValueNamesTheTensorAndLeavesNoFile) {
  values_[300] = INFINITY;
  test::expect_error(ErrorCode::invalid_argument, "blk.0.attn_q.weight", [&] { run("Q4_K"); });
  EXPECT_FALSE(std::filesystem::exists(out_));
  EXPECT_FALSE(std::filesystem::exists(out_.string() + ".part"));
}

TEST_F(QuantizeFile, RefusesToOverwriteTheModelThatItReads) {
  out_ = in_;
  test::expect_error(ErrorCode::invalid_argument, "itself", [&] { run("Q4_0"); });
  EXPECT_EQ(gguf::File::open(in_).tensors()[0].type, ElementType::f32);
}

TEST_F(QuantizeFile, ReadsQuantisedModelsToo) {
  run("Q8_0");
  std::filesystem::rename(out_, in_);
  quantize_file(gguf::File::open(in_), out_, find_recipe("F16").value(), {});
  const gguf::File file = gguf::File::open(out_);
  std::vector<float> got(values_.size());
  dequantize(ElementType::f16, file.find_tensor("blk.0.attn_q.weight")->data, got);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], values_[i], 0.03);
}

}  // namespace
}  // namespace edgerunner
