#include "program_test.h"
#include "support/shared_data.h"

#include <algorithm>
#include <limits>

namespace edgerunner::test {
namespace {

using ::testing::HasSubstr;

using Info = ProgramTest;

TEST_F(Info, TellsWhatTheFileHolds) {
  const nlohmann::json info = run_json({"info", model_, "--json"});
  EXPECT_EQ(info["architecture"], "llama");
  EXPECT_EQ(info["name"], "tiny");
  EXPECT_EQ(info["supported"], true);
  EXPECT_EQ(info["config"]["block_count"], 2);
  EXPECT_EQ(info["tensors"].size(), 1);
  EXPECT_EQ(info["tensors"][0]["type"], "F32");
  EXPECT_EQ(info["tensors"][0]["count"], 20);
  EXPECT_EQ(info["tensors"][0]["bytes"], info["parameters"].get<std::uint64_t>() * 4);
  EXPECT_EQ(info["tokenizer"]["tokens"], kTinyVocab);
  EXPECT_EQ(info["tokenizer"]["eos"], kTinyEos);
  EXPECT_EQ(info["tokenizer"]["bos"], nullptr);
}

TEST_F(Info, AddsUpTheMemoryForAContext) {
  const auto memory = [&](const std::string& context, const std::string& kv) {
    const nlohmann::json info =
        run_json({"info", model_, "--json", "--context", context, "--kv", kv});
    EXPECT_EQ(info["memory"].back()["context"], std::stoi(context));
    return info["memory"].back();
  };
  const nlohmann::json whole = memory("128", "f32");
  const auto cache = whole["cache_bytes"].get<std::uint64_t>();
  // Keys and values of 2 layers, 128 tokens, 2 heads, 8 dimensions, 4 bytes; rows may be padded.
  EXPECT_GE(cache, 2 * 2 * 128 * 2 * 8 * 4);
  EXPECT_EQ(memory("64", "f32")["cache_bytes"], cache / 2);
  EXPECT_EQ(memory("128", "f16")["cache_bytes"], cache / 2);
  // A quarter, and a scale of 4 bytes for each key and each value.
  EXPECT_EQ(memory("128", "q8")["cache_bytes"], cache / 4 + 2 * 2 * 128 * 2 * 4);
  for (const char* kv : {"f32", "f16", "q8"}) {
    EXPECT_EQ(whole["cache_bytes_by_kv"][kv], memory("128", kv)["cache_bytes"]) << kv;
  }
  EXPECT_EQ(whole["total_bytes"], whole["weights_bytes"].get<std::uint64_t>() + cache +
                                      whole["scratch_bytes"].get<std::uint64_t>());
}

TEST_F(Info, NamesTheInstructionSetAndTheKernels) {
  const nlohmann::json info = run_json({"info", model_, "--json", "--threads", "3"});
  EXPECT_EQ(info["backend"], "cpu");
  EXPECT_EQ(info["threads"], 3);
  EXPECT_FALSE(info["isa"].get<std::string>().empty());
  ASSERT_FALSE(info["kernels"].empty());
  EXPECT_THAT(info["kernels"][0].get<std::string>(), HasSubstr("F32"));
  const ProgramRun text = run_program({"info", model_});
  EXPECT_THAT(text.out, HasSubstr(info["isa"].get<std::string>()));
  EXPECT_THAT(text.out, HasSubstr(info["kernels"][0].get<std::string>()));
}

TEST_F(Info, AnswersForAFileThatCannotBeRun) {
  const std::string vocabulary = folder_ / "vocabulary.gguf";
  write_tiny_model(vocabulary, {.tensors = false});
  const nlohmann::json no_tensors = run_json({"info", vocabulary, "--json"});
  EXPECT_EQ(no_tensors["supported"], false);
  EXPECT_THAT(no_tensors["refusal"].get<std::string>(), HasSubstr("no tensors"));
  EXPECT_EQ(no_tensors["tokenizer"]["tokens"], kTinyVocab);

  const std::string strange = folder_ / "strange.gguf";
  write_tiny_model(strange, {.architecture = "frobnicator"});
  const nlohmann::json unknown = run_json({"info", strange, "--json"});
  EXPECT_EQ(unknown["supported"], false);
  EXPECT_THAT(unknown["refusal"].get<std::string>(), HasSubstr("frobnicator"));
  EXPECT_EQ(unknown["config"]["embedding_length"], 32);
}

// Without making a tokenizer, which takes some twenty times the work. The least work of three runs
// of each: neither the machine nor what else it does counts.
TEST_F(Info, AnswersAtOnceForALargeVocabulary) {
  EDGERUNNER_REQUIRE_SHARED_DATA();
  const std::string path = shared_dir() / "tokenizers/gemma3/vocab.gguf";  // 262,208 tokens
  const auto work = [](const std::vector<std::string>& arguments) {
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 3; ++i) {
      const ProgramRun run = run_program(arguments);
      EXPECT_EQ(run.status, 0) << run.err;
      least = std::min(least, run.cpu_seconds);
    }
    return least;
  };
  EXPECT_LT(work({"info", path}), work({"tokenize", path, "--text", "x"}) / 2);
}

}  // namespace
}  // namespace edgerunner::test
