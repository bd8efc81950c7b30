#include "quantize/recipe.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gguf/writer.h"
#include "support/temporary_folder.h"

namespace edgerunner {
namespace {

class Recipes : public ::testing::Test {
 protected:
  // A file of 16 layers without a head of its own, and 4 query heads to a KV head.
  gguf::File model(bool own_head, std::uint32_t experts = 0) {
    const std::filesystem::path path = folder_ / fmt::format("model{}-{}.gguf", own_head, experts);
    gguf::Writer writer(path);
    writer.set("general.architecture", std::string("llama"));
    writer.set("llama.block_count", std::uint32_t{16});
    writer.set("llama.attention.head_count", std::uint32_t{8});
    writer.set("llama.attention.head_count_kv", std::uint32_t{2});
    if (experts > 0) writer.set("llama.expert_count", experts);
    const std::uint64_t one[] = {1};
    if (own_head) {
      writer.declare("output.weight", ElementType::f32, one);
      writer.write("output.weight", std::array<std::byte, 4>{});
    } else {
      writer.declare("output_norm.weight", ElementType::f32, one);
      writer.write("output_norm.weight", std::array<std::byte, 4>{});
    }
    writer.finish();
    return gguf::File::open(path);
  }

  static ElementType choose(const gguf::File& file, std::string_view recipe, std::string_view name,
                            std::uint64_t cols = 512, std::uint32_t rank = 2) {
    const TypeChooser chooser(ModelOutline::of(file), find_recipe(recipe).value());
    return chooser.choose({name, ElementType::f16, rank, {cols, rank > 1 ? 64U : 1U, 1, 1}, {}});
  }

  test::TemporaryFolder folder_;
};

TEST_F(Recipes, AreFoundWithoutRegardToCase) {
  EXPECT_EQ(find_recipe("q4_k_m")->name, "Q4_K_M");
  EXPECT_FALSE(find_recipe("Q4_K_"));
  EXPECT_FALSE(find_recipe(""));
}

TEST_F(Recipes, LeaveVectorsRoutersAndBiasesAsTheyAre) {
  const gguf::File file = model(true);
  EXPECT_EQ(choose(file, "Q4_0", "blk.0.attn_norm.weight", 512, 1), ElementType::f16);
  EXPECT_EQ(choose(file, "Q4_0", "blk.0.ffn_gate_inp.weight"), ElementType::f16);
  EXPECT_EQ(choose(file, "Q4_0", "blk.0.attn_q.bias"), ElementType::f16);
  EXPECT_EQ(choose(file, "Q4_0", "blk.0.attn_q.weight"), ElementType::q4_0);
}

TEST_F(Recipes, RowsThatBlocksOf256DoNotDivideGetTheNextFinerTypeOfBlocksOf32) {
  const gguf::File file = model(true);
  EXPECT_EQ(choose(file, "Q4_K", "blk.0.attn_q.weight", 576), ElementType::q5_0);
  EXPECT_EQ(choose(file, "Q5_K", "blk.0.attn_q.weight", 576), ElementType::q5_1);
  EXPECT_EQ(choose(file, "Q6_K", "blk.0.attn_q.weight", 576), ElementType::q8_0);
  EXPECT_EQ(choose(file, "Q3_K", "blk.0.attn_q.weight", 576), ElementType::iq4_nl);
  EXPECT_EQ(choose(file, "Q8_0", "blk.0.attn_q.weight", 80), ElementType::f16);
}

TEST_F(Recipes, MixesKeepTheHeadFine) {
  EXPECT_EQ(choose(model(true), "Q4_K_M", "output.weight"), ElementType::q6_k);
  EXPECT_EQ(choose(model(true), "Q4_K_M", "token_embd.weight"), ElementType::q4_k);
  EXPECT_EQ(choose(model(false), "Q4_K_M", "token_embd.weight"), ElementType::q6_k);
}

TEST_F(Recipes, Q4KMKeepsValuesAndDownProjectionsOfSensitiveLayersFine) {
  const gguf::File file = model(true);
  for (const std::string_view role : {"attn_v", "ffn_down"}) {
    std::string fine;
    for (int layer = 0; layer < 16; ++layer) {
      const auto type = choose(file, "Q4_K_M", fmt::format("blk.{}.{}.weight", layer, role));
      fine += type == ElementType::q6_k ? '6' : '4';
    }
    EXPECT_EQ(fine, "6644644644644666") << role;
  }
  EXPECT_EQ(choose(file, "Q4_K_M", "blk.0.ffn_up.weight"), ElementType::q4_k);
}

TEST_F(Recipes, Q3KMKeepsEveryDownProjectionFiner) {
  const gguf::File file = model(true);
  EXPECT_EQ(choose(file, "Q3_K_M", "blk.0.ffn_down.weight"), ElementType::q5_k);
  for (int layer = 1; layer < 16; ++layer) {
    EXPECT_EQ(choose(file, "Q3_K_M", fmt::format("blk.{}.ffn_down.weight", layer)),
              ElementType::q4_k);
  }
  EXPECT_EQ(choose(file, "Q3_K_M", "blk.1.attn_v.weight"), ElementType::q5_k);
  EXPECT_EQ(choose(file, "Q3_K_M", "blk.2.attn_v.weight"), ElementType::q4_k);
  EXPECT_EQ(choose(file, "Q3_K_M", "blk.2.attn_output.weight"), ElementType::q4_k);
  EXPECT_EQ(choose(file, "Q3_K_M", "blk.2.ffn_up.weight"), ElementType::q3_k);
}

TEST_F(Recipes, FusedAndSharedMatricesCountAsTheirParts) {
  const gguf::File file = model(true);
  EXPECT_EQ(choose(file, "Q4_K_M", "blk.0.attn_qkv.weight"), ElementType::q6_k);
  EXPECT_EQ(choose(file, "Q4_K_M", "blk.2.attn_qkv.weight"), ElementType::q4_k);
  EXPECT_EQ(choose(file, "Q3_K_M", "blk.0.attn_qkv.weight"), ElementType::q5_k);
  EXPECT_EQ(choose(file, "Q4_K_M", "blk.0.ffn_down_shexp.weight"), ElementType::q6_k);
  EXPECT_EQ(choose(file, "Q4_K_M", "blk.0.ffn_down_exps.weight"), ElementType::q6_k);
}

TEST_F(Recipes, MixesKeepAttentionFineBesideEightExperts) {
  const gguf::File file = model(true, 8);
  for (const char* mix : {"Q2_K", "Q3_K_M", "Q4_K_M", "Q5_K_M"}) {
    EXPECT_EQ(choose(file, mix, "blk.2.attn_k.weight"), ElementType::q8_0);
    EXPECT_EQ(choose(file, mix, "blk.2.attn_v.weight"), ElementType::q8_0);
    EXPECT_EQ(choose(file, mix, "blk.2.attn_output.weight"), ElementType::q5_k);
  }
  EXPECT_EQ(choose(file, "Q4_K", "blk.2.attn_k.weight"), ElementType::q4_k);
  EXPECT_EQ(choose(model(true, 4), "Q4_K_M", "blk.2.attn_k.weight"), ElementType::q4_k);
}

TEST_F(Recipes, Q2KKeepsValuesFinerWhereHeadsShareThem) {
  const gguf::File file = model(true);
  EXPECT_EQ(choose(file, "Q2_K", "blk.3.attn_v.weight"), ElementType::q4_k);
  EXPECT_EQ(choose(file, "Q2_K", "blk.3.ffn_down.weight"), ElementType::q3_k);
  EXPECT_EQ(choose(file, "Q2_K", "blk.3.attn_q.weight"), ElementType::q2_k);
}

}  // namespace
}  // namespace edgerunner
