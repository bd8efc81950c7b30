#include "arch/lora_adapter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>

#include "gguf/writer.h"
#include "support/expect_error.h"
#include "support/lora_fixture.h"
#include "support/mutate.h"
#include "support/temporary_folder.h"
#include "tensor/dequantize.h"

namespace edgerunner {
namespace {

using test::expect_error;
using test::lora_file;
using test::LoraFixture;

struct TensorSpec {
  ElementType type = ElementType::f32;
  std::vector<std::uint64_t> shape;
};

// What a test changes of an adapter for the fixture "llama": a pair for a matrix of 32 by 32.
struct AdapterSpec {
  std::map<std::string, gguf::MetadataValue> metadata = {
      {"general.type", std::string("adapter")},
      {"general.architecture", std::string("llama")},
      {"adapter.type", std::string("lora")},
      {"adapter.lora.alpha", 8.0F}};
  std::map<std::string, TensorSpec> tensors = {
      {"blk.1.attn_q.weight.lora_a", {ElementType::f32, {32, 4}}},
      {"blk.1.attn_q.weight.lora_b", {ElementType::f32, {4, 32}}}};
};

class LoraAdapterTest : public ::testing::Test {
 protected:
  LoraAdapter read(const std::function<void(AdapterSpec&)>& change = {}) const {
    AdapterSpec spec;
    if (change) change(spec);
    const std::filesystem::path path = folder_ / "adapter.gguf";
    gguf::Writer writer(path);
    for (const auto& [key, value] : spec.metadata) writer.set(key, value);
    for (const auto& [name, tensor] : spec.tensors) {
      writer.declare(name, tensor.type, tensor.shape);
    }
    for (const auto& [name, tensor] : spec.tensors) {
      std::size_t rows = 1;
      for (std::size_t i = 1; i < tensor.shape.size(); ++i) rows *= tensor.shape[i];
      writer.write(name, std::vector<std::byte>(rows * row_bytes(tensor.type, tensor.shape[0])));
    }
    writer.finish();
    return LoraAdapter(gguf::File::open(path), fixture_.decoder);
  }

  void expect_refusal(ErrorCode code, const std::string& part,
                      const std::function<void(AdapterSpec&)>& change) const {
    expect_error(code, part, [&] { read(change); });
  }

  test::TemporaryFolder folder_;
  LoraFixture fixture_{"llama"};
};

TEST_F(LoraAdapterTest, HoldsThePairsOfItsFile) {
  const LoraAdapter& adapter = fixture_.adapters[0];
  EXPECT_EQ(adapter.alpha(), 6.0F);
  EXPECT_EQ(adapter.largest_rank(), 4U);
  const LowRank& down = adapter.update(1, LoraTarget::down);
  EXPECT_EQ(down.rank(), 4U);
  EXPECT_EQ(down.a.cols, 32U);
  EXPECT_EQ(down.b.rows, 32U);
  EXPECT_EQ(down.scale, 1.5F);
  EXPECT_EQ(adapter.embedding().a.rows, 48U) << "a row for each token";
  EXPECT_FALSE(adapter.update(0, LoraTarget::head).empty());
  EXPECT_TRUE(fixture_.adapters[1].update(0, LoraTarget::down).empty());
  EXPECT_EQ(fixture_.adapters[1].update(0, LoraTarget::v).scale, 0.5F);
}

TEST_F(LoraAdapterTest, SharesAFusedUpdateAmongItsParts) {
  const LoraFixture phi("phi3");
  const LoraAdapter& adapter = phi.adapters[0];
  const LowRank& q = adapter.update(0, LoraTarget::q);
  const LowRank& k = adapter.update(0, LoraTarget::k);
  EXPECT_EQ(q.a.data.data(), k.a.data.data());
  EXPECT_EQ(q.b.data.data() + q.b.data.size(), k.b.data.data());
  EXPECT_EQ(adapter.update(1, LoraTarget::up).b.rows, 32U);
}

TEST_F(LoraAdapterTest, HasTheScaleOfItsUserAloneWithoutAlpha) {
  EXPECT_EQ(read().update(1, LoraTarget::q).scale, 2.0F);
  for (const bool absent : {false, true}) {
    const LoraAdapter adapter = read([absent](AdapterSpec& spec) {
      spec.metadata["adapter.lora.alpha"] = 0.0F;
      if (absent) spec.metadata.erase("adapter.lora.alpha");
    });
    EXPECT_EQ(adapter.update(1, LoraTarget::q).scale, 1.0F);
  }
}

TEST_F(LoraAdapterTest, RefusesFilesOfOtherKinds) {
  const auto with = [](const char* key, const gguf::MetadataValue& value) {
    return [key, value](AdapterSpec& spec) { spec.metadata[key] = value; };
  };
  expect_refusal(ErrorCode::invalid_file, "general.type is 'model'",
                 with("general.type", std::string("model")));
  expect_refusal(ErrorCode::unsupported, "type 'control_vector'",
                 with("adapter.type", std::string("control_vector")));
  expect_refusal(ErrorCode::invalid_file, "architecture 'qwen2', but the model's is 'llama'",
                 with("general.architecture", std::string("qwen2")));
  expect_refusal(ErrorCode::unsupported, "adapter.alora.invocation_tokens",
                 with("adapter.alora.invocation_tokens", std::vector<std::uint32_t>{1}));
  expect_refusal(ErrorCode::invalid_file, "adapter.lora.alpha",
                 with("adapter.lora.alpha", std::nanf("")));
  expect_refusal(ErrorCode::invalid_file, "adapter.lora.alpha",
                 with("adapter.lora.alpha", std::string("8")));
  expect_refusal(ErrorCode::invalid_file, "holds no tensors",
                 [](AdapterSpec& spec) { spec.tensors.clear(); });
  expect_error(ErrorCode::invalid_file, "is no adapter",
               [&] { LoraAdapter(gguf::File::open(lora_file("llama.gguf")), fixture_.decoder); });
}

TEST_F(LoraAdapterTest, NamesTheTensorThatItRefuses) {
  const std::string a = "blk.1.attn_q.weight.lora_a";
  const std::string b = "blk.1.attn_q.weight.lora_b";
  const auto shaped = [](const std::string& name, const std::vector<std::uint64_t>& shape) {
    return [name, shape](AdapterSpec& spec) { spec.tensors[name].shape = shape; };
  };
  expect_refusal(ErrorCode::invalid_file, "'" + a + "' should have shape [32, 4]",
                 shaped(a, {31, 4}));
  expect_refusal(ErrorCode::invalid_file, "'" + b + "' should have shape [4, 32], but has [4, 33]",
                 shaped(b, {4, 33}));
  expect_refusal(ErrorCode::invalid_file, "'" + b + "' should have shape [4, 32]",
                 shaped(b, {5, 32}));
  expect_refusal(ErrorCode::invalid_file, "'" + a + "' should have shape", shaped(a, {32, 4, 1}));
  expect_refusal(ErrorCode::unsupported, "'" + a + "' has rank 4097", shaped(a, {32, 4097}));
  expect_refusal(ErrorCode::invalid_file, "'" + a + "' is there without its '" + b + "'",
                 [&](AdapterSpec& spec) { spec.tensors.erase(b); });
  expect_refusal(ErrorCode::invalid_file, "'" + b + "' is there without its '" + a + "'",
                 [&](AdapterSpec& spec) { spec.tensors.erase(a); });
  expect_refusal(ErrorCode::unsupported, "'blk.0.attn_norm.weight' is neither",
                 [](AdapterSpec& spec) {
                   spec.tensors["blk.0.attn_norm.weight"] = {ElementType::f32, {32}};
                 });
  for (const std::string base : {"blk.2.attn_q.weight", "blk.1.attn_qkv.weight", "", "blk.1."}) {
    expect_refusal(ErrorCode::invalid_file, "is for '" + base + "', which is no matrix",
                   [&](AdapterSpec& spec) {
                     spec.tensors = {{base + ".lora_a", {ElementType::f32, {32, 4}}},
                                     {base + ".lora_b", {ElementType::f32, {4, 32}}}};
                   });
  }
  expect_refusal(ErrorCode::unsupported, "'" + a + "' has element type I32",
                 [&](AdapterSpec& spec) {
                   spec.tensors[a] = {ElementType::i32, {32, 4}};
                 });
}

TEST_F(LoraAdapterTest, ReadsOrRefusesMutatedFiles) {
  test::MutationRandom random(20261130);
  for (const char* name : {"llama-a.gguf", "llama-b.gguf"}) {
    std::ifstream stream(lora_file(name), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(stream)), {});
    const auto span = std::as_bytes(std::span(text));
    const std::vector<std::byte> whole(span.begin(), span.end());
    const auto header = static_cast<std::size_t>(
        gguf::File::view(whole).tensors().front().data.data() - whole.data());
    int read = 0;
    int refused = 0;
    for (int i = 0; i < 1500; ++i) {
      const std::vector<std::byte> bytes = test::mutate(whole, header, random);
      try {
        const LoraAdapter adapter(gguf::File::view(bytes), fixture_.decoder);
        for (const LoraTarget target : {LoraTarget::q, LoraTarget::up, LoraTarget::head}) {
          const LowRank& update = adapter.update(1, target);
          if (update.empty()) continue;
          EXPECT_EQ(update.a.data.size(), update.a.rows * row_bytes(update.a.type, update.a.cols));
          EXPECT_EQ(update.b.data.size(), update.b.rows * row_bytes(update.b.type, update.b.cols));
        }
        ++read;
      } catch (const Error&) {
        ++refused;
      }
    }
    EXPECT_GT(read, 0);
    EXPECT_GT(refused, 0);
  }
}

}  // namespace
}  // namespace edgerunner
