// LoRA adapters of a loaded model: chosen by generation and session, kept apart in the cache.

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "edgerunner/embedding.h"
#include "edgerunner/model.h"
#include "support/expect_error.h"
#include "support/lora_fixture.h"

namespace edgerunner {
namespace {

using test::expect_error;
using test::lora_file;
using test::LoraFixture;

using Adapters = std::vector<AdapterScale>;

Model load(std::vector<AdapterFile> adapters, const std::string& model = "llama") {
  ModelOptions options;
  options.precision = Precision::exact;
  options.threads = 2;
  options.adapters = std::move(adapters);
  return Model::load(lora_file(model + ".gguf"), options);
}

Model load_both() {
  return load({{.path = lora_file("llama-a.gguf"), .scale = 1},
               {.path = lora_file("llama-b.gguf"), .scale = 0.5F}});
}

// More than a page, so that a prefix is found in the cache.
std::vector<TokenId> long_prompt() {
  std::vector<TokenId> tokens(100);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<TokenId>(i * i % 47);
  return tokens;
}

std::vector<float> logits(Model& model, std::span<const TokenId> tokens,
                          const std::optional<Adapters>& adapters) {
  Session session = model.session(adapters);
  const std::span<const float> row = session.logits(tokens);
  return {row.begin(), row.end()};
}

std::vector<TokenId> generate(Model& model, const std::optional<Adapters>& adapters) {
  GenerateOptions options;
  options.max_tokens = 20;
  options.ignore_eos = true;
  options.adapters = adapters;
  Generation generation = model.generate(long_prompt(), options);
  return generation.summary().tokens;
}

TEST(ModelAdapters, GiveWhatPeftGives) {
  for (const char* name : {"llama", "phi3", "starcoder2"}) {
    const LoraFixture fixture(name);
    std::vector<AdapterFile> files;
    for (const LoraAdapter& adapter : fixture.adapters) files.push_back({.path = adapter.path()});
    Model model = load(files, name);
    for (const LoraFixture::Answer& answer : fixture.answers) {
      Adapters chosen;
      for (const AdapterSet::Use& use : answer.adapters.uses) {
        chosen.push_back({.id = static_cast<std::uint32_t>(use.adapter - fixture.adapters.data()),
                          .scale = use.scale});
      }
      const std::vector<float> row = logits(model, fixture.prompt, chosen);
      const std::vector<double>& expected = answer.logits.rbegin()->second;
      for (std::size_t i = 0; i < row.size(); ++i) {
        EXPECT_NEAR(row[i], expected[i], 1e-4 * answer.peak) << name;
      }
    }
  }
}

TEST(ModelAdapters, OfScaleZeroLeaveEveryBit) {
  Model plain = load({});
  const std::vector<float> expected = logits(plain, long_prompt(), std::nullopt);
  Model zero = load({{.path = lora_file("llama-a.gguf"), .scale = 0}});
  EXPECT_EQ(logits(zero, long_prompt(), std::nullopt), expected);
  Model both = load_both();
  EXPECT_EQ(logits(both, long_prompt(), Adapters{}), expected);
  EXPECT_EQ(logits(both, long_prompt(), Adapters{{.id = 1, .scale = 0}}), expected);
  EXPECT_NE(logits(both, long_prompt(), Adapters{{.id = 1, .scale = 0.25F}}), expected);
}

TEST(ModelAdapters, ApplyAsTheyWereLoadedWhereNothingIsChosen) {
  Model model = load_both();
  EXPECT_EQ(logits(model, long_prompt(), std::nullopt),
            logits(model, long_prompt(), Adapters{{.id = 1, .scale = 0.5F}, {.id = 0}}));
  ASSERT_EQ(model.info().adapters.size(), 2U);
  EXPECT_EQ(model.info().adapters[0].rank, 4U);
  EXPECT_EQ(model.info().adapters[1].id, 1U);
  EXPECT_EQ(model.info().adapters[1].scale, 0.5F);
  EXPECT_EQ(model.info().adapters[1].alpha, 16.0F);
}

TEST(ModelAdapters, KeepTheirSequencesApartInTheCache) {
  Model model = load_both();
  const std::vector<TokenId> prompt = long_prompt();
  std::vector<TokenId> longer = prompt;
  longer.push_back(3);
  const std::vector<std::optional<Adapters>> choices = {Adapters{}, Adapters{{.id = 0}},
                                                        Adapters{{.id = 0, .scale = 0.5F}},
                                                        Adapters{{.id = 1}}, std::nullopt};
  for (const auto& choice : choices) {
    Session session = model.session(choice);
    session.logits(prompt);
    EXPECT_EQ(session.reused_tokens(), 0U) << "of another set's";
  }
  for (const auto& choice : choices) {
    Session session = model.session(choice);
    const std::span<const float> row = session.logits(longer);
    EXPECT_EQ(session.reused_tokens(), prompt.size()) << "of its own";
    Model fresh = load_both();
    EXPECT_EQ(std::vector<float>(row.begin(), row.end()), logits(fresh, longer, choice));
  }
}

// Hidden states are computed without a look into the cache, but what they leave there is found.
TEST(ModelAdapters, KeepEmbeddingsApartToo) {
  Model model = load_both();
  Model plain = load({});
  EXPECT_NE(embed(model, long_prompt()), embed(plain, long_prompt()));
  Session session = model.session(Adapters{});
  session.logits(long_prompt());
  EXPECT_EQ(session.reused_tokens(), 0U);
}

TEST(ModelAdapters, AreChosenByEachOfTheGenerationsThatRunTogether) {
  const std::vector<std::optional<Adapters>> choices = {
      Adapters{}, Adapters{{.id = 0}}, Adapters{{.id = 1, .scale = -1}}, std::nullopt};
  std::vector<std::vector<TokenId>> alone;
  for (const auto& choice : choices) {
    Model model = load_both();
    alone.push_back(generate(model, choice));
  }
  EXPECT_NE(alone[0], alone[1]);
  Model model = load_both();
  std::vector<Generation> together;
  for (const auto& choice : choices) {
    GenerateOptions options;
    options.max_tokens = 20;
    options.ignore_eos = true;
    options.adapters = choice;
    together.push_back(model.generate(long_prompt(), options));
  }
  for (std::size_t i = 0; i < choices.size(); ++i) {
    EXPECT_EQ(together[i].summary().tokens, alone[i]);
  }
}

TEST(ModelAdapters, RefuseChoicesThatAreNone) {
  Model model = load_both();
  const auto choose = [&](const Adapters& adapters) {
    return [&model, adapters] { generate(model, adapters); };
  };
  expect_error(ErrorCode::invalid_argument, "no adapter with id 2", choose({{.id = 2}}));
  expect_error(ErrorCode::invalid_argument, "adapter 1 is chosen twice",
               choose({{.id = 1}, {.id = 1, .scale = 0}}));
  expect_error(ErrorCode::invalid_argument, "scale of adapter 0",
               choose({{.id = 0, .scale = INFINITY}}));
  Model plain = load({});
  expect_error(ErrorCode::invalid_argument, "no adapter with id 0",
               [&] { plain.session(Adapters{{.id = 0}}); });
}

TEST(ModelAdapters, RefuseOtherModelsAndFiles) {
  expect_error(ErrorCode::invalid_file, "phi3-a.gguf",
               [] { load({{.path = lora_file("phi3-a.gguf")}}); });
  expect_error(ErrorCode::io, "absent.gguf", [] { load({{.path = lora_file("absent.gguf")}}); });
}

}  // namespace
}  // namespace edgerunner
