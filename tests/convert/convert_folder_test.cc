#include "convert/convert_folder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "backend/executor.h"
#include "hugging_face_folder.h"
#include "quantize/quantize_file.h"
#include "support/expect_error.h"
#include "support/model_fixture.h"
#include "support/shared_data.h"
#include "support/temporary_folder.h"
#include "tensor/dequantize.h"

// Fixtures become folders by the inverse of the conversion, with the config.json that made them in
// Hugging Face's library, and must come back.

namespace edgerunner::convert {
namespace {

// Those whose config.json is known.
std::vector<std::string> unquantised_fixtures() {
  std::vector<std::string> names;
  for (const std::string& name : test::all_fixtures()) {
    if (!std::filesystem::exists(test::shared_dir() / "fixtures" / "models" / (name + ".json"))) {
      continue;
    }
    const std::string type = test::load_fixture(name).weight_type;
    if (type == "F32" || type == "F16" || type == "BF16") names.push_back(name);
  }
  return names;
}

class ConvertFolder : public ::testing::Test {
 protected:
  gguf::File convert(const std::string& type = "", std::uint64_t max_shard_bytes = 0) {
    QuantizeOptions options;
    options.threads = 2;
    options.max_shard_bytes = max_shard_bytes;
    convert_folder(in_, out_, find_recipe(type), options);
    return gguf::File::open(out_);
  }

  test::TemporaryFolder folder_;
  std::filesystem::path in_ = folder_ / "model";
  std::filesystem::path out_ = folder_ / "out.gguf";
};

// To the bit; `computed` tensors to a rounding: factors of RoPE, Gemma's norms, from which the test
// took one.
void expect_same_tensor(const gguf::Tensor& got, const gguf::Tensor& wanted,
                        bool computed = false) {
  SCOPED_TRACE(std::string(wanted.name));
  EXPECT_EQ(got.type, wanted.type);
  EXPECT_EQ(got.shape, wanted.shape);
  if (!computed) {
    EXPECT_TRUE(
        std::equal(got.data.begin(), got.data.end(), wanted.data.begin(), wanted.data.end()));
    return;
  }
  std::vector<float> a(got.elements());
  std::vector<float> b(wanted.elements());
  dequantize(got.type, got.data, a);
  dequantize(wanted.type, wanted.data, b);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6F * std::max(1.0F, b[i]));
}

TEST_F(ConvertFolder, GivesTheTensorsAndTheLogitsOfEveryFixture) {
  EDGERUNNER_REQUIRE_SHARED_DATA();
  const std::vector<std::string> names = unquantised_fixtures();
  EXPECT_GE(names.size(), 22U);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    test::ModelFixture fixture = test::load_fixture(name);
    std::filesystem::remove_all(in_);
    test::write_fixture_folder(in_, name, fixture.file);
    gguf::File file = convert();
    ASSERT_EQ(file.tensors().size(), fixture.file.tensors().size());
    for (const gguf::Tensor& wanted : fixture.file.tensors()) {
      const gguf::Tensor* got = file.find_tensor(wanted.name);
      ASSERT_NE(got, nullptr) << wanted.name;
      expect_same_tensor(*got, wanted,
                         wanted.name.starts_with("rope_") ||
                             (name.starts_with("gemma") && wanted.name.ends_with("_norm.weight")));
    }
    fixture.decoder = read_decoder(file);
    ExecutorOptions options;
    options.max_context = fixture.context;
    options.pages = pages_for(fixture.context);
    const auto executor = make_reference_executor(fixture.decoder, options);
    EXPECT_LT(test::largest_error(*executor, fixture, 64), 1e-5);
  }
}

TEST_F(ConvertFolder, ReadsShardsAndWritesShards) {
  EDGERUNNER_REQUIRE_SHARED_DATA();
  const test::ModelFixture fixture = test::load_fixture("llama-gqa-64-bf16");
  test::write_fixture_folder(in_, fixture.name, fixture.file, 3);
  QuantizeOptions options;
  options.max_shard_bytes = fixture.file.bytes() / 3;
  convert_folder(in_, out_, std::nullopt, options);
  std::filesystem::path first;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    if (entry.path().filename().string().starts_with("out-00001-of-")) first = entry.path();
  }
  ASSERT_FALSE(first.empty());
  const gguf::File file = gguf::File::open(first);
  EXPECT_GT(file.shard_count(), 1U);
  for (const gguf::Tensor& wanted : fixture.file.tensors()) {
    expect_same_tensor(*file.find_tensor(wanted.name), wanted);
  }
}

TEST_F(ConvertFolder, QuantisesAsTheQuantiserDoes) {
  EDGERUNNER_REQUIRE_SHARED_DATA();
  const test::ModelFixture fixture = test::load_fixture("llama-gqa-untied");
  test::write_fixture_folder(in_, fixture.name, fixture.file);
  for (const std::string type : {"F16", "Q8_0", "Q4_K_M"}) {
    const gguf::File file = convert(type);
    const std::filesystem::path direct = folder_ / "direct.gguf";
    quantize_file(fixture.file, direct, find_recipe(type).value(), {});
    const gguf::File quantised = gguf::File::open(direct);
    EXPECT_EQ(file.get_uint("general.file_type"), quantised.get_uint("general.file_type"));
    for (const gguf::Tensor& wanted : quantised.tensors()) {
      expect_same_tensor(*file.find_tensor(wanted.name), wanted);
    }
  }
}

// Inputs whose columns differ, for every matrix of the file, expert by expert.
ImportanceMatrix uneven_importance(const gguf::File& file) {
  ImportanceMatrix importance;
  for (const gguf::Tensor& tensor : file.tensors()) {
    if (tensor.rank < 2) continue;
    const auto experts = static_cast<std::uint32_t>(tensor.shape[2]);
    for (std::uint32_t expert = 0; expert < experts; ++expert) {
      std::vector<float> input(tensor.shape[0]);
      for (std::size_t i = 0; i < input.size(); ++i) {
        input[i] = static_cast<float>(1 + (i * 7 + expert * 3 + tensor.name.size()) % 11);
      }
      importance.add(tensor.name, experts, expert, input);
    }
  }
  return importance;
}

TEST_F(ConvertFolder, QuantisesByAnImportanceMatrixAsTheQuantiserDoes) {
  EDGERUNNER_REQUIRE_SHARED_DATA();
  for (const std::string name : {"llama-gqa-untied", "qwen2-moe"}) {
    const test::ModelFixture fixture = test::load_fixture(name);
    std::filesystem::remove_all(in_);
    test::write_fixture_folder(in_, name, fixture.file);
    const std::filesystem::path plain = folder_ / "plain.gguf";
    convert_folder(in_, plain, find_recipe("F32"), {});
    const gguf::File whole = gguf::File::open(plain);
    const ImportanceMatrix importance = uneven_importance(whole);
    QuantizeOptions options;
    options.importance = &importance;
    for (const std::string type : {"Q4_0", "Q4_K_M", "IQ4_NL"}) {
      SCOPED_TRACE(fmt::format("{} {}", name, type));
      convert_folder(in_, out_, find_recipe(type), options);
      const std::filesystem::path in_two_steps = folder_ / "two.gguf";
      quantize_file(whole, in_two_steps, find_recipe(type).value(), options);
      const gguf::File wanted = gguf::File::open(in_two_steps);
      const gguf::File got = gguf::File::open(out_);
      for (const gguf::Tensor& tensor : wanted.tensors()) {
        expect_same_tensor(*got.find_tensor(tensor.name), tensor);
      }
      convert_folder(in_, in_two_steps, find_recipe(type), {});
      const gguf::File even = gguf::File::open(in_two_steps);
      const auto bytes = [](const gguf::File& file) {
        const gguf::Tensor& tensor = *file.find_tensor("blk.0.attn_q.weight");
        return std::vector<std::byte>(tensor.data.begin(), tensor.data.end());
      };
      EXPECT_NE(bytes(even), bytes(got)) << "importance had no effect";
    }
  }
}

}  // namespace
}  // namespace edgerunner::convert
