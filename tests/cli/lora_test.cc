#include "support/lora_fixture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>

#include "program_test.h"

namespace edgerunner::test {
namespace {

using ::testing::HasSubstr;

class Lora : public ProgramTest {
 protected:
  const std::string llama_ = lora_file("llama.gguf");
  const std::string a_ = lora_file("llama-a.gguf");
  const std::string b_ = lora_file("llama-b.gguf");
};

TEST_F(Lora, LogitsAreThoseOfPeft) {
  std::ifstream stream(lora_file("llama.json"));
  const nlohmann::json fixture = nlohmann::json::parse(stream);
  const std::string ids =
      fmt::format("{}", fmt::join(fixture["prompt"].get<std::vector<int>>(), ","));
  for (const nlohmann::json& answer : fixture["answers"]) {
    std::vector<std::string> command = {"logits",      llama_,  "--ids", ids,
                                        "--precision", "exact", "--json"};
    for (const nlohmann::json& use : answer["adapters"]) {
      const double scale = use["scale"];
      const std::string path = use["id"] == 0 ? a_ : b_;
      command.emplace_back("--lora");
      command.push_back(scale == 1 ? path : path + ":" + std::to_string(scale));
    }
    const nlohmann::json logits = run_json(command)["logits"][0];
    const nlohmann::json& expected = answer["logits"]["23"];
    const double peak = answer["max_abs_logit"];
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(logits[i].get<double>(), expected[i].get<double>(), 1e-4 * peak);
    }
  }
}

TEST_F(Lora, AppliesWhereverAModelRuns) {
  const std::vector<std::vector<std::string>> commands = {
      {"generate", llama_, "--ids", "1,2,3", "--max-tokens", "4", "--json"},
      {"perplexity", llama_, "--ids", "1,2,3,4,5,6", "--json"},
      {"bench", llama_, "--prompt", "8", "--decode", "2", "--depth", "0", "--repetitions", "1",
       "--json"},
      {"profile", llama_, "--prompt", "8", "--decode", "2", "--repetitions", "1", "--json"},
      {"verify", llama_, "--tokens", "12", "--greedy", "4", "--precision", "exact", "--json"}};
  for (std::vector<std::string> command : commands) {
    command.insert(command.end(), {"--lora", a_, "--lora", b_ + ":0.5"});
    const nlohmann::json result = run_json(command);
    if (command[0] == "verify") {
      EXPECT_EQ(result["verdict"], "pass") << result;
    }
  }
  const auto nll = [&](const std::vector<std::string>& lora) {
    std::vector<std::string> command = {"perplexity", llama_, "--ids", "1,2,3,4,5,6", "--json"};
    command.insert(command.end(), lora.begin(), lora.end());
    return run_json(command)["nll"].get<double>();
  };
  EXPECT_NE(nll({"--lora", a_}), nll({}));
  EXPECT_EQ(nll({"--lora", a_ + ":0"}), nll({}));
}

TEST_F(Lora, InfoSaysWhatAnAdapterIs) {
  const nlohmann::json info = run_json({"info", b_, "--json"});
  EXPECT_EQ(info["supported"], false);
  EXPECT_THAT(info["refusal"].get<std::string>(), HasSubstr("--lora"));
  EXPECT_EQ(info["architecture"], "llama");
  EXPECT_EQ(info["adapter"]["type"], "lora");
  EXPECT_EQ(info["adapter"]["alpha"], 16.0);
  EXPECT_EQ(info["adapter"]["matrices"], 6);
  EXPECT_EQ(info["adapter"]["largest_rank"], 32);
  EXPECT_THAT(run_program({"info", b_}).out, HasSubstr("lora of 6 matrices, rank 32 to 32"));

  const nlohmann::json model = run_json({"info", llama_, "--lora", a_ + ":0.5", "--json"});
  EXPECT_EQ(model["adapter"], nullptr);
  EXPECT_EQ(model["adapters"][0]["scale"], 0.5);
  EXPECT_EQ(model["adapters"][0]["rank"], 4);
}

TEST_F(Lora, RefusesWhatIsNoAdapterOfTheModel) {
  const auto run = [&](const std::string& lora, const std::string& model) {
    return run_program({"logits", model, "--ids", "1", "--lora", lora});
  };
  expect_refusal(run(llama_, llama_), 1, {"llama.gguf", "is no adapter"});
  expect_refusal(run(lora_file("phi3-a.gguf"), llama_), 1, {"phi3-a.gguf", "'phi3'", "'llama'"});
  expect_refusal(run(a_, model_), 1, {"llama-a.gguf", "lora_a", "should have shape"});
  expect_refusal(run(a_ + ":nan", llama_), 2, {"--lora", "finite"});
  expect_refusal(run_program({"logits", a_, "--ids", "1"}), 1, {"llama-a.gguf", "--lora"});
  expect_refusal(run_program({"bench", "--shape", "llama32-1b", "--type", "Q4_0", "--lora", a_}), 2,
                 {"--lora", "--shape"});
}

}  // namespace
}  // namespace edgerunner::test
