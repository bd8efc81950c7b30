#include "edgerunner/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "edgerunner/error.h"
#include "support/model_fixture.h"
#include "support/shared_data.h"
#include "support/temporary_folder.h"
#include "support/tiny_model.h"

namespace edgerunner {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

ModelOptions with(BackendKind backend, Precision precision = Precision::exact) {
  ModelOptions options;
  options.backend = backend;
  options.precision = precision;
  options.threads = 2;
  return options;
}

GenerateOptions tokens(std::uint32_t count) {
  GenerateOptions options;
  options.max_tokens = count;
  options.ignore_eos = true;
  return options;
}

class ModelTest : public ::testing::Test {
 protected:
  std::filesystem::path tiny(const test::TinyModelOptions& options = {}) {
    const auto path = folder_ / "tiny.gguf";
    test::write_tiny_model(path, options);
    return path;
  }

 private:
  test::TemporaryFolder folder_;
};

TEST_F(ModelTest, TellsWhatItIs) {
  const Model model = Model::load(tiny(), with(BackendKind::cpu));
  const ModelInfo& info = model.info();
  EXPECT_EQ(info.architecture, "llama");
  EXPECT_EQ(info.name, "tiny");
  EXPECT_EQ(info.trained_context, 1024U);
  EXPECT_EQ(info.context, 1024U);
  EXPECT_EQ(info.vocab_size, model.tokenizer().size());
  EXPECT_EQ(info.backend, "cpu");
  EXPECT_FALSE(info.isa.empty());
  EXPECT_EQ(info.threads, 2);
  EXPECT_GT(info.parameters, 90000U);
  EXPECT_GT(info.file_bytes, 4 * info.parameters);
  EXPECT_GT(info.cache_bytes, 0U);
  EXPECT_GT(info.scratch_bytes, 0U);
}

TEST_F(ModelTest, StreamsTextThatIsWholeUtf8) {
  Model model = Model::load(tiny());
  GenerateOptions options = tokens(100);
  options.sampling.temperature = 1.5F;
  std::string text;
  for (const std::string& piece : model.generate("the end", options)) {
    EXPECT_TRUE(is_utf8(piece));
    text += piece;
  }
  EXPECT_FALSE(text.empty());
}

TEST_F(ModelTest, ReportsProgressFromNothingToAll) {
  std::vector<double> fractions;
  ModelOptions options;
  options.progress = [&fractions](double fraction) { fractions.push_back(fraction); };
  std::future<Model> loading = Model::load_async(tiny(), options);
  Model model = loading.get();
  ASSERT_GE(fractions.size(), 2U);
  EXPECT_EQ(fractions.front(), 0);
  EXPECT_EQ(fractions.back(), 1);
  EXPECT_TRUE(std::is_sorted(fractions.begin(), fractions.end()));
  EXPECT_EQ(model.generate("a", tokens(3)).summary().generated_tokens, 3U);
}

TEST_F(ModelTest, GivesTheSameTextOnBothBackends) {
  Model cpu = Model::load(tiny(), with(BackendKind::cpu));
  Model reference = Model::load(tiny(), with(BackendKind::reference));
  const auto expected = reference.generate("the tiny", tokens(80)).summary().tokens;
  EXPECT_EQ(cpu.generate("the tiny", tokens(80)).summary().tokens, expected);
}

TEST_F(ModelTest, GivesTheSameBitsForAnyChunkAndCache) {
  for (const std::uint32_t window : {0U, 40U}) {
    const auto path = tiny({.sliding_window = window});
    for (const BackendKind backend : {BackendKind::reference, BackendKind::cpu}) {
      for (const Precision precision : {Precision::exact, Precision::fast}) {
        ModelOptions options = with(backend, precision);
        Model whole = Model::load(path, options);
        std::vector<TokenId> sequence = whole.tokenizer().encode(std::string(300, 'x'));
        for (std::size_t i = 0; i < sequence.size(); ++i) {
          sequence[i] = static_cast<TokenId>(3 + (i * i * 7) % 300);
        }
        Session session = whole.session();
        const auto computed = session.logits(sequence);
        const std::vector<float> expected(computed.begin(), computed.end());
        for (const std::uint32_t chunk : {1U, 7U}) {
          options.prefill_chunk = chunk;
          Model chunked = Model::load(path, options);
          Session again = chunked.session();
          EXPECT_THAT(again.logits(sequence), ElementsAreArray(expected));
        }
        Session prefix = whole.session();
        whole.trim_memory();
        prefix.logits(std::span(sequence).first(150));
        EXPECT_THAT(prefix.logits(sequence), ElementsAreArray(expected));
        EXPECT_EQ(prefix.reused_tokens(), 150U);
      }
    }
  }
}

TEST_F(ModelTest, GivesConcurrentGenerationsWhatEachGetsAlone) {
  Model model = Model::load(tiny(), with(BackendKind::cpu, Precision::fast));
  const auto options = [](int i) {
    GenerateOptions result = tokens(40 + i);
    result.sampling.temperature = 0.9F;
    result.sampling.seed = i;
    return result;
  };
  const auto prompt = [](int i) { return std::string(5 + 20 * i, static_cast<char>('a' + i)); };
  std::vector<std::vector<TokenId>> alone;
  for (int i = 0; i < 8; ++i) {
    alone.push_back(model.generate(prompt(i), options(i)).summary().tokens);
  }
  model.trim_memory();
  std::vector<Generation> generations;
  for (int i = 0; i < 8; ++i) generations.push_back(model.generate(prompt(i), options(i)));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(generations[i].summary().tokens, alone[i]) << i;
}

TEST_F(ModelTest, WorksOnIdsWithoutATokenizer) {
  Model model = Model::load(tiny({.tokenizer = false}));
  EXPECT_THROW(model.tokenizer(), Error);
  const std::vector<TokenId> prompt = {5, 6, 7};
  EXPECT_EQ(model.generate(prompt, tokens(4)).summary().tokens.size(), 4U);
}

TEST_F(ModelTest, RefusesWhatDoesNotFitBeforeItIsAllocated) {
  ModelOptions options;
  options.memory_limit = 1 << 20;
  options.context = 1024;
  try {
    Model::load(tiny(), options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
    EXPECT_THAT(error.what(), HasSubstr("weights 0.4"));
    EXPECT_THAT(error.what(), HasSubstr("1.0 MiB are available"));
  }
}

TEST_F(ModelTest, RefusesAFileThatIsNotThere) {
  try {
    Model::load("/nowhere/model.gguf");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
  }
  EXPECT_THROW(Model::load_async("/nowhere/model.gguf").get(), Error);
}

TEST_F(ModelTest, RefusesALongerContextThanTheModelWasTrainedFor) {
  ModelOptions options;
  options.context = 2000;
  EXPECT_THROW(Model::load(tiny(), options), Error);
}

// Hugging Face's greedy continuation of every fixture, through the whole runtime.
TEST(ModelFixtures, ContinueAsHuggingFaceDoes) {
  for (const std::string& name : test::all_fixtures()) {
    const test::ModelFixture fixture = test::load_fixture(name);
    for (const BackendKind backend : {BackendKind::reference, BackendKind::cpu}) {
      ModelOptions loading = with(backend);
      loading.context = fixture.context;
      Model model = Model::load(fixture.file.name(), loading);
      const GenerateOptions options = tokens(static_cast<std::uint32_t>(fixture.greedy.size()));
      const std::span<const TokenId> prompt = fixture.prompt;
      EXPECT_EQ(model.generate(prompt, options).summary().tokens, fixture.greedy)
          << name << " on " << model.info().backend;
    }
  }
}

}  // namespace
}  // namespace edgerunner
