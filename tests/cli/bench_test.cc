#include "program_test.h"

namespace edgerunner::test {
namespace {

using ::testing::HasSubstr;

using Bench = ProgramTest;

TEST_F(Bench, JsonHoldsEveryTest) {
  const nlohmann::json bench =
      run_json({"bench", model_, "--prompt", "4,70", "--decode", "3", "--depth", "0,80",
                "--repetitions", "2", "--threads", "1", "--json"});
  ASSERT_EQ(bench["results"].size(), 4);
  const std::vector<std::tuple<std::string, int, int>> expected = {
      {"prefill", 4, 0}, {"prefill", 70, 0}, {"decode", 3, 0}, {"decode", 3, 80}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const nlohmann::json& result = bench["results"][i];
    EXPECT_EQ(std::tuple(result["test"].get<std::string>(), result["tokens"].get<int>(),
                         result["depth"].get<int>()),
              expected[i]);
    EXPECT_GT(result["tps"], 0);
    EXPECT_LE(result["tps_min"], result["tps"]);
    EXPECT_LE(result["tps"], result["tps_max"]);
    EXPECT_EQ(result["threads"], 1);
    EXPECT_EQ(result["backend"], "cpu");
  }
  EXPECT_FALSE(bench["isa"].get<std::string>().empty());
  EXPECT_FALSE(bench["kernels"].empty());
}

TEST_F(Bench, AddsUpTheTokensOfSequencesAtOnce) {
  const nlohmann::json bench =
      run_json({"bench", model_, "--prompt", "none", "--decode", "3", "--depth", "0,70",
                "--sequences", "1,5", "--repetitions", "1", "--json"});
  ASSERT_EQ(bench["results"].size(), 4);
  for (const std::size_t i : {0, 1, 2, 3}) {
    EXPECT_EQ(bench["results"][i]["sequences"], i % 2 == 0 ? 1 : 5);
    EXPECT_EQ(bench["results"][i]["depth"], i < 2 ? 0 : 70);
    EXPECT_EQ(bench["results"][i]["tokens"], 3);
    EXPECT_GT(bench["results"][i]["tps"], 0);
  }
}

TEST_F(Bench, MeasuresStepsThatCheckGuesses) {
  const nlohmann::json bench =
      run_json({"bench", model_, "--prompt", "none", "--decode", "3", "--depth", "70",
                "--draft-tokens", "1,7", "--repetitions", "1", "--json"});
  ASSERT_EQ(bench["results"].size(), 3);
  EXPECT_EQ(bench["results"][0]["drafted"], 0);
  for (const std::size_t i : {1, 2}) {
    EXPECT_EQ(bench["results"][i]["test"], "check");
    EXPECT_EQ(bench["results"][i]["drafted"], i == 1 ? 1 : 7);
    EXPECT_EQ(bench["results"][i]["depth"], 70);
    EXPECT_GT(bench["results"][i]["tps"], 0);
  }
}

TEST_F(Bench, TheDefaultTestsFitTheContext) {
  const nlohmann::json bench = run_json({"bench", model_, "--repetitions", "1", "--json"});
  ASSERT_EQ(bench["results"].size(), 3);
  EXPECT_EQ(bench["results"][0]["tokens"], 16);
  EXPECT_EQ(bench["results"][1]["tokens"], 128);
  EXPECT_EQ(bench["results"][2]["test"], "decode");
}

TEST_F(Bench, TextNamesTheInstructionSetAndTheKernels) {
  const ProgramRun run =
      run_program({"bench", model_, "--prompt", "4", "--decode", "0", "--repetitions", "1"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("instruction set"));
  EXPECT_THAT(run.out, HasSubstr("kernel F32"));
  EXPECT_THAT(run.out, HasSubstr("prefill"));
}

TEST_F(Bench, RefusesWhatCannotBeMeasured) {
  expect_refusal(run_program({"bench", model_, "--prompt", "193"}), 1, {"193", "192"});
  expect_refusal(run_program({"bench", model_, "--depth", "190", "--decode", "3"}), 1, {"193"});
  expect_refusal(run_program({"bench", model_, "--prompt", "few"}), 2, {"few"});
  expect_refusal(run_program({"bench", model_, "--prompt", "0"}), 2, {"--prompt"});
  expect_refusal(run_program({"bench", model_, "--repetitions", "0"}), 2, {"--repetitions"});
  expect_refusal(run_program({"bench", model_, "--sequences", "0"}), 2, {"--sequences"});
  expect_refusal(run_program({"bench", model_, "--prompt", "none", "--decode", "0"}), 2, {"--"});
}

}  // namespace
}  // namespace edgerunner::test
