#include <csignal>

#include "program_test.h"

namespace edgerunner::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Generate : public ProgramTest {
 protected:
  // The tiny model's text means nothing, but it is the same for the same options.
  std::vector<std::string> command(std::vector<std::string> options) const {
    options.insert(options.begin(), {"generate", model_});
    return options;
  }
  nlohmann::json json(std::vector<std::string> options, const ProgramSetup& setup = {}) const {
    options.emplace_back("--json");
    return run_json(command(std::move(options)), setup);
  }
  const std::vector<std::string> greedy_ = {"--ids", "5,6,7", "--max-tokens", "12", "--ignore-eos"};
};

TEST_F(Generate, JsonHoldsEveryKeyOfTheContract) {
  const nlohmann::json result = json(greedy_);
  EXPECT_TRUE(result["text"].is_string());
  EXPECT_EQ(result["ids"].size(), 12);
  EXPECT_EQ(result["prompt_tokens"], 3);
  EXPECT_EQ(result["generated_tokens"], 12);
  EXPECT_EQ(result["reused_tokens"], 0);
  EXPECT_EQ(result["finish_reason"], "length");
  EXPECT_GT(result["prefill_tps"], 0);
  EXPECT_GT(result["decode_tps"], 0);
  EXPECT_GT(result["time_to_first_token_s"], 0);
}

TEST_F(Generate, StreamsTheSameTextAndNothingElse) {
  const std::string text = json(greedy_)["text"];
  const ProgramRun run = run_program(command(greedy_));
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.out, text.ends_with('\n') ? text : text + "\n");
  EXPECT_EQ(run.err, "");
}

TEST_F(Generate, StatsAreOneLineOnStandardError) {
  std::vector<std::string> options = greedy_;
  options.emplace_back("--stats");
  const ProgramRun run = run_program(command(options));
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1);
  EXPECT_THAT(run.err, AllOf(HasSubstr("3 prompt tokens"), HasSubstr("0 reused"),
                             HasSubstr("12 generated"), HasSubstr("prefill"), HasSubstr("decode"),
                             HasSubstr("first token"), HasSubstr("length")));
}

TEST_F(Generate, ThePromptComesFromAnySource) {
  const nlohmann::json expected = json({"--prompt", "he\n", "--max-tokens", "4"})["ids"];
  const std::string path = write_file("prompt", "he\n");
  EXPECT_EQ(json({"--file", path, "--max-tokens", "4"})["ids"], expected);
  EXPECT_EQ(json({"-", "--max-tokens", "4"}, {.input = "he\n"})["ids"], expected);
  EXPECT_EQ(json({"--ids", "258,12", "--max-tokens", "4"})["ids"], expected);
}

TEST_F(Generate, ControlTokensInAPromptAreParsed) {
  EXPECT_EQ(json({"--prompt", "<|mark|>x", "--max-tokens", "1"})["prompt_tokens"], 2);
}

TEST_F(Generate, TheSeedDecidesWhatIsDrawn) {
  const auto draw = [&](const std::string& seed) {
    return json({"--ids", "5,6", "--max-tokens", "16", "--ignore-eos", "--temperature", "2",
                 "--seed", seed})["ids"];
  };
  EXPECT_EQ(draw("1"), draw("1"));
  EXPECT_NE(draw("1"), draw("2"));
}

TEST_F(Generate, ALogitBiasDecidesTheToken) {
  const nlohmann::json result =
      json({"--ids", "5", "--max-tokens", "3", "--logit-bias", "9=1000", "--logit-bias", "0=-5"});
  EXPECT_EQ(result["ids"], nlohmann::json({9, 9, 9}));
}

TEST_F(Generate, AStopStringEndsTheTextAndIsNotShown) {
  const std::string he = std::to_string(kTinyHe);
  const nlohmann::json result = json({"--ids", "5", "--max-tokens", "9", "--logit-bias",
                                      he + "=1000", "--stop", "[never]", "--stop", "heh"});
  EXPECT_EQ(result["text"], "");
  EXPECT_EQ(result["finish_reason"], "stop");
}

TEST_F(Generate, TheModelsEndTokenStopsUnlessIgnored) {
  const std::string bias = std::to_string(kTinyEos) + "=1000";
  const nlohmann::json ended = json({"--ids", "5", "--max-tokens", "4", "--logit-bias", bias});
  EXPECT_EQ(ended["finish_reason"], "stop");
  EXPECT_EQ(ended["text"], "");
  const nlohmann::json ignored =
      json({"--ids", "5", "--max-tokens", "4", "--logit-bias", bias, "--ignore-eos"});
  EXPECT_EQ(ignored["finish_reason"], "length");
}

TEST_F(Generate, AFullContextEndsTheText) {
  const nlohmann::json result = json({"--ids", "5,6", "--context", "8", "--ignore-eos"});
  EXPECT_EQ(result["finish_reason"], "context_full");
}

TEST_F(Generate, BothBackendsWriteTheSameGreedyText) {
  std::vector<std::string> exact = greedy_;
  exact.insert(exact.end(), {"--precision", "exact"});
  std::vector<std::string> reference = greedy_;
  reference.insert(reference.end(), {"--backend", "reference"});
  EXPECT_EQ(json(exact)["ids"], json(reference)["ids"]);
}

TEST_F(Generate, ACircularContextGoesOnWhereItIsFull) {
  const std::vector<std::string> options = {"--ids",        "5,6,7",        "--context", "16",
                                            "--ignore-eos", "--max-tokens", "50"};
  std::vector<std::string> circular = options;
  circular.insert(circular.end(), {"--circular", "--keep", "3"});
  const nlohmann::json result = json(circular);
  EXPECT_EQ(result["finish_reason"], "length");
  EXPECT_EQ(result["generated_tokens"], 50);
  EXPECT_GT(result["context_shifts"], 3);
  EXPECT_EQ(json(options)["context_shifts"], 0);
  circular.emplace_back("--stats");
  EXPECT_THAT(run_program(command(circular)).err, HasSubstr("forgot its older half"));
  expect_refusal(run_program(command({"--ids", "5", "--keep", "3"})), 2, {"--keep", "--circular"});
  expect_refusal(
      run_program(command({"--ids", "5", "--context", "16", "--circular", "--keep", "16"})), 1,
      {"keep", "16"});
}

TEST_F(Generate, AnInterruptEndsWithTheSummary) {
  const std::string letter = std::to_string(tiny_byte_token('x')) + "=1000";
  const std::vector<std::string> endless =
      command({"--ids", "5", "--circular", "--logit-bias", letter});
  const ProgramRun run = run_program(endless, {.signal = SIGINT, .signal_after_output = "xxx"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("xxx"));
  EXPECT_THAT(run.err, AllOf(HasSubstr("finished: cancelled"), HasSubstr("1 prompt token")));
}

TEST_F(Generate, GuessingAheadGivesTheSameIds) {
  for (const char* temperature : {"0", "0.8"}) {
    const std::vector<std::string> options = {"--prompt",  "he he he he",      "--max-tokens",
                                              "40",        "--ignore-eos",     "--temperature",
                                              temperature, "--repeat-penalty", "1.1"};
    const auto with = [&](const std::vector<std::string>& more) {
      std::vector<std::string> all = options;
      all.insert(all.end(), more.begin(), more.end());
      return json(all);
    };
    const nlohmann::json plain = with({});
    EXPECT_EQ(plain["drafted_tokens"], 0);
    EXPECT_EQ(plain["accepted_tokens"], 0);
    EXPECT_EQ(with({"--speculate", "off"})["ids"], plain["ids"]);
    EXPECT_EQ(with({"--speculate", "lookup"})["ids"], plain["ids"]);
    EXPECT_EQ(with({"--draft", model_, "--draft-tokens", "3"})["ids"], plain["ids"]);
  }
}

TEST_F(Generate, RefusesToGuessByTwoWaysOrByAnUnknownOne) {
  const auto run = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"--prompt", "x"});
    return run_program(command(std::move(options)));
  };
  expect_refusal(run({"--speculate", "magic"}), 2, {"--speculate", "magic"});
  expect_refusal(run({"--speculate", "lookup", "--draft", model_}), 2, {"--draft"});
  expect_refusal(run({"--speculate", "lookup", "--draft-tokens", "0"}), 2, {"--draft-tokens"});
  expect_refusal(run({"--draft-confidence", "2"}), 2, {"--draft-confidence"});
  expect_refusal(run({"--draft", folder_ / "none.gguf"}), 1, {"none.gguf"});
}

TEST_F(Generate, RefusesWhatCannotBeGenerated) {
  const auto run = [&](std::vector<std::string> options) {
    return run_program(command(std::move(options)));
  };
  expect_refusal(run({}), 2, {"--prompt"});
  expect_refusal(run({"--prompt", "x", "--ids", "1"}), 2, {"--prompt"});
  expect_refusal(run({"--ids", "x"}), 2, {"--ids"});
  expect_refusal(run({"--ids", "300"}), 1, {"300"});
  expect_refusal(run({"--prompt", ""}), 1, {"prompt"});
  expect_refusal(run({"--prompt", std::string(300, 'x')}), 1, {"300", "192"});
  expect_refusal(run({"--prompt", "xxxxxxxxx", "--context", "8"}), 1, {"9", "8"});
  expect_refusal(run({"--prompt", "x", "--context", "4000000000"}), 1, {"4000000000"});
  expect_refusal(run({"--prompt", "x", "--temperature", "-1"}), 2, {"--temperature"});
  expect_refusal(run({"--prompt", "x", "--top-p", "1.5"}), 2, {"--top-p"});
  expect_refusal(run({"--prompt", "x", "--logit-bias", "5"}), 2, {"--logit-bias"});
  expect_refusal(run({"--prompt", "x", "--logit-bias", "5=nan"}), 2, {"--logit-bias"});
  expect_refusal(run({"--prompt", "x", "--max-tokens", "-1"}), 2, {"--max-tokens"});
  expect_refusal(run({"--prompt", "x", "--stop", ""}), 2, {"--stop"});
}

}  // namespace
}  // namespace edgerunner::test
