#include <gmock/gmock.h>

#include <fstream>
#include <iterator>

#include "convert/convert_folder.h"
#include "hugging_face_folder.h"
#include "support/expect_error.h"
#include "support/model_fixture.h"
#include "support/mutate.h"
#include "support/shared_data.h"
#include "support/temporary_folder.h"

// A folder is untrusted: whatever it holds, it becomes a model that loads, or one sentence.

namespace edgerunner::convert {
namespace {

using nlohmann::json;

class HostileFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    EDGERUNNER_REQUIRE_SHARED_DATA();
    write("qwen2");
  }

  void write(const std::string& fixture) {
    std::filesystem::remove_all(in_);
    const test::ModelFixture model = test::load_fixture(fixture);
    test::write_fixture_folder(in_, fixture, model.file);
    config_ = test::fixture_config(fixture);
    tensors_ = test::folder_tensors(model.file);
  }

  void convert() { convert_folder(in_, out_, std::nullopt, {}); }

  // Converts, or fails as untrusted input may, and then leaves no file.
  void expect_no_harm() {
    std::filesystem::remove(out_);
    try {
      convert();
      ++accepted_;
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::invalid_file ||
                  error.code() == ErrorCode::unsupported ||
                  error.code() == ErrorCode::invalid_argument)
          << error.what();
      EXPECT_FALSE(std::filesystem::exists(out_)) << error.what();
    }
    EXPECT_FALSE(std::filesystem::exists(out_.string() + ".part"));
  }

  void expect_refused(ErrorCode code, const std::string& part) {
    test::expect_error(code, part, [&] { convert(); });
    EXPECT_FALSE(std::filesystem::exists(out_));
  }

  void write_config() { test::write_text(in_ / "config.json", config_.dump()); }
  void write_tensors() { test::write_safetensors(in_ / "model.safetensors", tensors_); }

  test::TemporaryFolder folder_;
  std::filesystem::path in_ = folder_ / "model";
  std::filesystem::path out_ = folder_ / "out.gguf";
  json config_;
  test::FolderTensors tensors_;
  int accepted_ = 0;
};

TEST_F(HostileFolder, EveryKeyOfConfigMayHoldAnything) {
  const std::vector<json> awkward = {nullptr,
                                     true,
                                     -1,
                                     0,
                                     1,
                                     3.5,
                                     1e300,
                                     "x",
                                     json({}),
                                     json::array(),
                                     json::array({-1}),
                                     std::uint64_t{1} << 31,
                                     (std::uint64_t{1} << 42) + 1,
                                     std::uint64_t{1} << 63};
  const json original = config_;
  for (const auto& [key, unused] : original.items()) {
    for (const json& value : awkward) {
      SCOPED_TRACE(key + " = " + value.dump());
      config_ = original;
      config_[key] = value;
      write_config();
      expect_no_harm();
    }
    config_ = original;
    config_.erase(key);
    write_config();
    expect_no_harm();
  }
}

TEST_F(HostileFolder, MutatedFilesDoNoHarm) {
  test::MutationRandom random(6);
  for (const char* name : {"config.json", "tokenizer.json", "model.safetensors"}) {
    std::ifstream stream(in_ / name, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    const auto* begin = reinterpret_cast<const std::byte*>(text.data());
    const std::vector<std::byte> bytes(begin, begin + text.size());
    const std::size_t header = name == std::string("model.safetensors") ? 4000 : bytes.size();
    for (int round = 0; round < 150; ++round) {
      SCOPED_TRACE(std::string(name) + " " + std::to_string(round));
      const std::vector<std::byte> mutated = test::mutate(bytes, header, random);
      test::write_text(in_ / name, {reinterpret_cast<const char*>(mutated.data()), mutated.size()});
      expect_no_harm();
    }
    test::write_text(in_ / name, text);
  }
  EXPECT_GT(accepted_, 0);
}

TEST_F(HostileFolder, AMissingTensorIsNamed) {
  tensors_.erase("model.layers.1.mlp.down_proj.weight");
  write_tensors();
  expect_refused(ErrorCode::invalid_file, "blk.1.ffn_down.weight");
}

TEST_F(HostileFolder, ATensorWithoutAPlaceIsNamed) {
  tensors_["model.layers.0.mlp.lora.weight"] = tensors_["model.norm.weight"];
  write_tensors();
  expect_refused(ErrorCode::unsupported, "model.layers.0.mlp.lora.weight");
}

TEST_F(HostileFolder, AWrongShapeIsNamed) {
  auto& tensor = tensors_["model.layers.0.self_attn.q_proj.weight"];
  std::swap(tensor.shape[0], tensor.shape[1]);
  tensor.shape[0] /= 2;
  tensor.shape[1] *= 2;
  write_tensors();
  expect_refused(ErrorCode::invalid_file, "blk.0.attn_q.weight");
}

TEST_F(HostileFolder, AVocabularyThatIsNotTheEmbeddingsIsRefused) {
  config_["vocab_size"] = 4'000'000;
  write_config();
  expect_refused(ErrorCode::invalid_file, "vocab_size");
}

TEST_F(HostileFolder, AnIndexMayNotLeaveTheFolder) {
  test::write_text(in_ / "model.safetensors.index.json",
                   R"({"weight_map":{"model.norm.weight":"../other.safetensors"}})");
  expect_refused(ErrorCode::invalid_file, "model.norm.weight");
  test::write_text(in_ / "model.safetensors.index.json",
                   R"({"weight_map":{"nothing.weight":"model.safetensors"}})");
  expect_refused(ErrorCode::invalid_file, "nothing.weight");
}

TEST_F(HostileFolder, AMissingExpertIsRefused) {
  write("mixtral-moe");
  tensors_.erase("model.layers.0.block_sparse_moe.experts.2.w1.weight");
  write_tensors();
  expect_refused(ErrorCode::invalid_file, "experts");
}

TEST_F(HostileFolder, AnUnknownFamilyIsRefusedByName) {
  config_["architectures"] = {"FalconForCausalLM"};
  write_config();
  expect_refused(ErrorCode::unsupported, "FalconForCausalLM");
}

TEST_F(HostileFolder, AnEmptyFolderSaysWhatIsMissing) {
  std::filesystem::remove(in_ / "model.safetensors");
  expect_refused(ErrorCode::invalid_file, "model.safetensors");
  std::filesystem::remove(in_ / "config.json");
  expect_refused(ErrorCode::io, "config.json");
}

}  // namespace
}  // namespace edgerunner::convert
