#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "edgerunner/error.h"
#include "edgerunner/model.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "support/tiny_model.h"

// Speculative decoding on real executors: the same bits with and without.

namespace edgerunner::test {
namespace {

class DraftModelTest : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const TinyModelOptions& options = {}) {
    const std::string path = folder_ / name;
    write_tiny_model(path, options);
    return path;
  }

  static ModelOptions with(BackendKind backend, Precision precision) {
    ModelOptions options;
    options.backend = backend;
    options.precision = precision;
    options.threads = 2;
    options.context = 256;
    options.speculation.adaptive = false;
    options.speculation.draft_tokens = 6;
    options.speculation.draft_confidence = 0;  // random weights are sure of nothing
    return options;
  }

  static std::vector<Summary> generate(const std::string& path, const ModelOptions& options) {
    Model model = Model::load(path, options);
    std::vector<Generation> generations;
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      GenerateOptions each;
      each.max_tokens = 60;
      each.ignore_eos = true;
      each.sampling.temperature = seed == 0 ? 0.0F : 0.7F;
      each.sampling.seed = seed;
      each.sampling.repeat_penalty = 1.05F;
      generations.push_back(model.generate("the other an in the other an in the", each));
    }
    std::vector<Summary> summaries;
    for (Generation& generation : generations) summaries.push_back(generation.summary());
    return summaries;
  }

  // Returns the tokens that were guessed right.
  static std::uint32_t expect_same(const std::string& path, const ModelOptions& plain,
                                   const ModelOptions& guessing) {
    const std::vector<Summary> expected = generate(path, plain);
    const std::vector<Summary> got = generate(path, guessing);
    std::uint32_t right = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(got[i].tokens, expected[i].tokens);
      EXPECT_GT(got[i].drafted_tokens + (guessing.speculation.lookup ? 1U : 0U), 0U);
      right += got[i].accepted_tokens;
    }
    return right;
  }

  TemporaryFolder folder_;
};

TEST_F(DraftModelTest, GivesTheSameTokensOnEveryBackend) {
  const std::string target = file("target.gguf", {.sliding_window = 80});
  const std::string stranger = file("stranger.gguf", {.seed = 5});
  for (const BackendKind backend : {BackendKind::reference, BackendKind::cpu}) {
    for (const Precision precision : {Precision::exact, Precision::fast}) {
      const ModelOptions plain = with(backend, precision);
      ModelOptions guessing = plain;
      guessing.speculation.draft_model = target;
      EXPECT_GT(expect_same(target, plain, guessing), 90U);
      guessing.speculation.draft_model = stranger;
      expect_same(target, plain, guessing);
      guessing.speculation.draft_confidence = 0.01;  // now and then a guess
      expect_same(target, plain, guessing);
      guessing.speculation = {.lookup = true, .draft_tokens = 6, .adaptive = false};
      expect_same(target, plain, guessing);
      if (backend == BackendKind::reference) break;  // it has one precision
    }
  }
}

TEST_F(DraftModelTest, RefusesAnotherVocabularyByName) {
  const std::string target = file("target.gguf");
  ModelOptions options = with(BackendKind::cpu, Precision::fast);
  options.speculation.draft_model = file("other.gguf", {.last_token = "dollar"});
  expect_error(ErrorCode::invalid_argument, "other.gguf: its token 319 is 'dollar'",
               [&] { Model::load(target, options); });
  options.speculation.draft_model = file("none.gguf", {.tokenizer = false});
  expect_error(ErrorCode::invalid_argument, "none.gguf: it has no vocabulary",
               [&] { Model::load(target, options); });
}

TEST_F(DraftModelTest, RefusesWhatItCannotDo) {
  const std::string target = file("target.gguf");
  ModelOptions options = with(BackendKind::cpu, Precision::fast);
  options.speculation.draft_model = target;
  options.speculation.lookup = true;
  expect_error(ErrorCode::invalid_argument, "lookup", [&] { Model::load(target, options); });
  options.speculation.lookup = false;
  options.speculation.draft_tokens = 65;
  expect_error(ErrorCode::invalid_argument, "draft_tokens", [&] { Model::load(target, options); });
  options.speculation.draft_tokens = 4;
  options.memory_limit = 1000;
  expect_error(ErrorCode::out_of_memory, "draft model", [&] { Model::load(target, options); });
}

}  // namespace
}  // namespace edgerunner::test
