#include "program_test.h"

namespace edgerunner::test {
namespace {

using ::testing::HasSubstr;

using Profile = ProgramTest;

TEST_F(Profile, OperationsAddUpToThePhase) {
  const nlohmann::json profile =
      run_json({"profile", model_, "--prompt", "40", "--decode", "3", "--depth", "20",
                "--repetitions", "2", "--threads", "2", "--json"});
  EXPECT_EQ(profile["backend"], "cpu");
  EXPECT_EQ(profile["threads"], 2);
  EXPECT_GT(profile["limits"]["read_bytes_per_s"], 0);
  EXPECT_EQ(profile["limits"]["weights_read_bytes_per_s"], 0);  // of so small a model
  EXPECT_EQ(profile["limits"]["handover_seconds"].size(), 2);
  ASSERT_EQ(profile["phases"].size(), 2);
  EXPECT_EQ(profile["phases"][0]["phase"], "prefill");
  EXPECT_EQ(profile["phases"][0]["tokens"], 40);
  EXPECT_EQ(profile["phases"][1]["phase"], "decode");
  EXPECT_EQ(profile["phases"][1]["depth"], 20);
  for (const nlohmann::json& phase : profile["phases"]) {
    const nlohmann::json& total = phase["total"];
    EXPECT_GT(phase["tps"], 0);
    EXPECT_EQ(phase["handover_seconds"].size(), 2);
    for (const char* key : {"seconds", "weight_bytes", "cache_bytes", "f32_operations"}) {
      double sum = 0;
      for (const nlohmann::json& operation : phase["operations"])
        sum += operation[key].get<double>();
      EXPECT_GT(sum, 0) << key;
      EXPECT_NEAR(sum, total[key].get<double>(), 1e-9 * sum) << key;
    }
    EXPECT_GE(phase["operations"].size(), 11);
  }
}

TEST_F(Profile, DecodingReadsTheFilesWeightsOnceAToken) {
  const nlohmann::json info = run_json({"info", model_, "--json"});
  double tensors = 0;
  for (const nlohmann::json& group : info["tensors"]) tensors += group["bytes"].get<double>();
  const nlohmann::json profile = run_json(
      {"profile", model_, "--prompt", "0", "--decode", "4", "--repetitions", "1", "--json"});
  ASSERT_EQ(profile["phases"].size(), 1);
  const double row = info["config"]["embedding_length"].get<double>() * sizeof(float);
  EXPECT_EQ(profile["phases"][0]["total"]["weight_bytes"], 4 * (tensors + row));
}

TEST_F(Profile, TextNamesTheUnitThatBounds) {
  const ProgramRun run =
      run_program({"profile", model_, "--prompt", "8", "--decode", "2", "--repetitions", "1"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("limits, measured now: read"));
  EXPECT_THAT(run.out, HasSubstr("prefill of 8 tokens"));
  EXPECT_THAT(run.out, HasSubstr("decode of 2 tokens at depth 0"));
  EXPECT_THAT(run.out, HasSubstr("gate and up"));
  EXPECT_THAT(run.out, HasSubstr("memory"));
}

TEST_F(Profile, RefusesWhatCannotBeProfiled) {
  expect_refusal(run_program({"profile", model_, "--backend", "reference"}), 1,
                 {"reference", "--backend cpu"});
  expect_refusal(run_program({"profile", model_, "--prompt", "0", "--decode", "0"}), 2,
                 {"--prompt"});
  expect_refusal(run_program({"profile", model_, "--prompt", "193"}), 1, {"193", "192"});
  expect_refusal(run_program({"profile"}), 2, {"MODEL", "--shape"});
  expect_refusal(run_program({"profile", model_, "--shape", "smollm2-135m"}), 2, {"--shape"});
  expect_refusal(run_program({"bench", "--shape", "smollm2-135m", "--type", "Q9"}), 2, {"Q9"});
  expect_refusal(run_program({"bench", "--shape", "smollm2-135m", "--type", "Q4_K"}), 1,
                 {"token_embd.weight", "576", "Q4_K"});
  expect_refusal(run_program({"bench", "--shape", "gpt-5"}), 2, {"gpt-5"});
}

TEST_F(Profile, RunsAShapeWithoutAFile) {
  const nlohmann::json bench =
      run_json({"bench", "--shape", "smollm2-135m", "--type", "Q4_0", "--prompt", "2", "--decode",
                "0", "--repetitions", "1", "--json"});
  EXPECT_THAT(bench["model"].get<std::string>(), HasSubstr("smollm2-135m, Q4_0, random weights"));
  EXPECT_GT(bench["results"][0]["tps"], 0);
  const nlohmann::json profile =
      run_json({"profile", "--shape", "smollm2-135m", "--type", "Q8_0", "--prompt", "0", "--decode",
                "1", "--repetitions", "1", "--json"});
  // 134,479,872 weights in blocks of 32 that take 34 bytes; norms and the looked-up row on top.
  EXPECT_NEAR(profile["phases"][0]["total"]["weight_bytes"].get<double>(),
              134'479'872 / 32.0 * 34 + (61 * 576) * 4 + 576 / 32.0 * 34, 1);
}

}  // namespace
}  // namespace edgerunner::test
