#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "arch/decoder.h"
#include "arch/model_outline.h"
#include "gguf/expect_error.h"
#include "support/temporary_folder.h"

namespace edgerunner::test {
namespace {

class ReadDecoder : public ::testing::Test {
 protected:
  DecoderSpec spec(const ModelOutline& outline) {
    outline.write(folder_.path() / "model.gguf");
    return read_decoder(gguf::File::open(folder_.path() / "model.gguf")).spec;
  }

  void refuses(ErrorCode code, const std::string& part,
               const std::function<void(ModelOutline&)>& change,
               const std::string& architecture = "llama") {
    ModelOutline outline = model_outline(architecture);
    change(outline);
    expect_error(code, part, [&] { spec(outline); });
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(ReadDecoder, ReadsEveryFamily) {
  for (const std::string architecture : {"llama", "mistral", "qwen2", "qwen3"}) {
    const DecoderSpec read = spec(model_outline(architecture));
    EXPECT_EQ(read.architecture, architecture);
    EXPECT_EQ(read.dim, 32U);
    EXPECT_EQ(read.vocab_size, 40U);
    EXPECT_EQ(read.context_length, 128U);
    ASSERT_EQ(read.layers.size(), 2U);
    EXPECT_EQ(read.layers[1].heads, 4U);
    EXPECT_EQ(read.layers[1].kv_heads, 2U);
    EXPECT_EQ(read.layers[1].head_dim, 8U);
    EXPECT_EQ(read.layers[1].ffn_dim, 48U);
    EXPECT_EQ(read.common_window(), 0U);
    EXPECT_EQ(read.rope.inverse_frequencies.size(), 4U);
    EXPECT_EQ(read.rope.layout,
              architecture.starts_with("qwen") ? RopeLayout::half_split : RopeLayout::interleaved);
  }
}

TEST_F(ReadDecoder, TakesCountsLayerByLayer) {
  ModelOutline outline = model_outline("llama");
  outline.metadata["llama.feed_forward_length"] = std::vector<std::uint32_t>{48, 64};
  outline.tensors["blk.1.ffn_gate.weight"].shape = {32, 64};
  outline.tensors["blk.1.ffn_up.weight"].shape = {32, 64};
  outline.tensors["blk.1.ffn_down.weight"].shape = {64, 32};
  const DecoderSpec read = spec(outline);
  EXPECT_EQ(read.layers[0].ffn_dim, 48U);
  EXPECT_EQ(read.layers[1].ffn_dim, 64U);
}

TEST_F(ReadDecoder, ReadsTheSlidingWindowOfMistral) {
  ModelOutline outline = model_outline("mistral");
  outline.metadata["mistral.attention.sliding_window"] = 16U;
  EXPECT_EQ(spec(outline).common_window(), 16U);
}

TEST_F(ReadDecoder, RefusesRopeFactorsThatAreNotPositive) {
  ModelOutline outline = model_outline("llama");
  outline.tensors["rope_freqs.weight"] = {ElementType::f32, {4}};
  // Zeros, which would be divided by.
  expect_error(ErrorCode::unsupported, "rope_freqs.weight", [&] { spec(outline); });
}

TEST_F(ReadDecoder, RefusesWhatItDoesNotRunByName) {
  refuses(ErrorCode::unsupported, "architecture 'mamba'",
          [](ModelOutline& m) { m.metadata["general.architecture"] = std::string("mamba"); });
  refuses(ErrorCode::unsupported, "mixture-of-experts",
          [](ModelOutline& m) { m.metadata["llama.expert_count"] = 8U; });
  refuses(ErrorCode::unsupported, "RoPE scaling type 'longrope'",
          [](ModelOutline& m) { m.metadata["llama.rope.scaling.type"] = std::string("longrope"); });
  refuses(ErrorCode::unsupported, "IQ2_XXS", [](ModelOutline& m) {
    m.metadata["llama.embedding_length"] = 256U;
    m.tensors["token_embd.weight"] = {ElementType::iq2_xxs, {256, 40}};
  });
  refuses(ErrorCode::unsupported, "tensor 'blk.0.attn_sinks.weight' has no place",
          [](ModelOutline& m) {
            m.tensors["blk.0.attn_sinks.weight"] = {ElementType::f32, {4}};
          });
  refuses(ErrorCode::unsupported, "heads of 512 dimensions",
          [](ModelOutline& m) { m.metadata["llama.attention.key_length"] = 512U; });
  refuses(ErrorCode::unsupported, "values of 16 dimensions",
          [](ModelOutline& m) { m.metadata["llama.attention.value_length"] = 16U; });
}

TEST_F(ReadDecoder, RefusesMissingAndMisshapenTensorsWithBothShapes) {
  for (const auto& [name, tensor] : model_outline("qwen3").tensors) {
    if (name == "output.weight") continue;
    refuses(
        ErrorCode::invalid_file, "tensor '" + name + "' is missing",
        [&](ModelOutline& m) { m.tensors.erase(name); }, "qwen3");
    if (name == "token_embd.weight") continue;
    refuses(
        ErrorCode::invalid_file, "tensor '" + name + "' should have shape [",
        [&](ModelOutline& m) { m.tensors[name].shape.back() += 1; }, "qwen3");
  }
  refuses(ErrorCode::invalid_file, "should have shape [32, 16], but has [32, 24]",
          [](ModelOutline& m) {
            m.tensors["blk.1.attn_k.weight"].shape = {32, 24};
          });
}

TEST_F(ReadDecoder, RefusesMissingAndWronglyTypedKeys) {
  for (const auto& [key, value] : model_outline("llama").metadata) {
    refuses(ErrorCode::invalid_file, key, [&](ModelOutline& m) {
      m.metadata[key] = std::vector<std::string>{"a", "b", "c"};
    });
    if (key == "llama.attention.head_count_kv") continue;  // all heads, then
    refuses(ErrorCode::invalid_file, key, [&](ModelOutline& m) { m.metadata.erase(key); });
  }
}

TEST_F(ReadDecoder, RefusesCountsThatNoModelHas) {
  const auto refuses_value = [&](const std::string& key, const gguf::MetadataValue& value) {
    refuses(ErrorCode::invalid_file, key, [&](ModelOutline& m) { m.metadata[key] = value; });
  };
  for (const std::string key : {"llama.context_length", "llama.embedding_length",
                                "llama.block_count", "llama.feed_forward_length",
                                "llama.attention.head_count", "llama.attention.head_count_kv"}) {
    refuses_value(key, 0U);
    refuses_value(key, std::uint64_t{1} << 31 | 1);
    refuses_value(key, (std::uint64_t{1} << 42) + 1);
    refuses_value(key, std::numeric_limits<std::uint64_t>::max());
    refuses_value(key, std::int32_t{-1});
  }
  refuses_value("llama.attention.head_count", 3U);
  refuses_value("llama.attention.head_count_kv", 3U);
  refuses_value("llama.attention.head_count_kv", std::vector<std::uint32_t>{2});
  refuses_value("llama.rope.dimension_count", 7U);
  refuses_value("llama.rope.dimension_count", 10U);
  refuses_value("llama.rope.freq_base", -1.0F);
  refuses_value("llama.rope.freq_base", std::numeric_limits<float>::quiet_NaN());
  refuses_value("llama.attention.layer_norm_rms_epsilon", -1.0F);
}

}  // namespace
}  // namespace edgerunner::test
