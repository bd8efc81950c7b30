#include <cmath>

#include "program_test.h"
#include "support/shared_data.h"

namespace edgerunner::test {
namespace {

using ::testing::HasSubstr;

using Perplexity = ProgramTest;

std::string ids_of(const nlohmann::json& list) {
  std::string text;
  for (const nlohmann::json& id : list) {
    if (!text.empty()) text.push_back(',');
    text += id.dump();
  }
  return text;
}

TEST_F(Perplexity, IsHuggingFacesOnTheFixtures) {
  EDGERUNNER_REQUIRE_SHARED_DATA();
  const auto folder = shared_dir() / "fixtures/models";
  for (const char* name : {"llama-gqa-untied", "llama-gqa-256x1-q80", "mistral-swa", "qwen3"}) {
    std::ifstream file(folder / (std::string(name) + ".json"));
    const nlohmann::json fixture = nlohmann::json::parse(file);
    const std::string model = folder / (std::string(name) + ".gguf");
    for (const auto& [option, value, bound] :
         std::vector<std::tuple<std::string, std::string, double>>{
             {"--backend", "reference", 1e-6}, {"--precision", "exact", 1e-5}}) {
      const nlohmann::json result = run_json(
          {"perplexity", model, "--ids", ids_of(fixture["prompt"]), option, value, "--json"});
      EXPECT_NEAR(result["nll"].get<double>(), fixture["nll_mean"].get<double>(), bound) << name;
      EXPECT_EQ(result["tokens"], fixture["nll_count"]);
      EXPECT_NEAR(result["perplexity"].get<double>(), fixture["ppl"].get<double>(),
                  2 * bound * fixture["ppl"].get<double>());
    }
  }
}

// Each window by the logits command, and the mean in the test's own arithmetic.
TEST_F(Perplexity, ScoresATextInStridedWindows) {
  std::vector<int> ids;
  for (int i = 0; i < 50; ++i) ids.push_back((i * 31 + 7) % 259);
  const auto list = [&](int begin, int end) {
    return ids_of(nlohmann::json(std::vector<int>(ids.begin() + begin, ids.begin() + end)));
  };
  const nlohmann::json result = run_json({"perplexity", model_, "--ids", list(0, 50), "--window",
                                          "20", "--stride", "8", "--precision", "exact", "--json"});
  long double sum = 0;
  int scored = 1;
  for (int begin = 0; scored < 50; begin += 8) {
    const int end = std::min(begin + 20, 50);
    const nlohmann::json logits =
        run_json({"logits", model_, "--ids", list(begin, end), "--positions", "all", "--precision",
                  "exact", "--json"});
    for (; scored < end; ++scored) {
      const nlohmann::json& row = logits["logits"][scored - 1 - begin];
      long double total = 0;
      for (const nlohmann::json& logit : row) total += std::exp(logit.get<long double>());
      sum += std::log(total) - row[ids[scored]].get<long double>();
    }
  }
  EXPECT_EQ(result["tokens"], 49);
  EXPECT_NEAR(result["nll"].get<double>(), static_cast<double>(sum / 49), 1e-6);
}

TEST_F(Perplexity, ComparesWithSavedLogits) {
  const std::string text = write_file("text", "hello, hello, the whole helpful text");
  const std::string saved = folder_ / "logits";
  const nlohmann::json first = run_json({"perplexity", model_, "--file", text, "--save-logits",
                                         saved, "--precision", "exact", "--json"});
  EXPECT_FALSE(first.contains("kl"));
  const nlohmann::json same = run_json({"perplexity", model_, "--file", text, "--kl-against", saved,
                                        "--precision", "exact", "--json"});
  EXPECT_EQ(same["kl"], 0);
  EXPECT_EQ(same["top1_agreement"], 1);
  EXPECT_EQ(same["nll"], first["nll"]);
  EXPECT_EQ(same["nll_difference"], 0);
  EXPECT_EQ(same["nll_difference_error"], 0);
  const nlohmann::json other =
      run_json({"perplexity", model_, "--file", text, "--kl-against", saved, "--json"});
  EXPECT_GT(other["kl"], 0);
  EXPECT_LT(other["kl"], 1e-3);
  EXPECT_NEAR(other["nll_difference"].get<double>(),
              other["nll"].get<double>() - first["nll"].get<double>(), 1e-9);
  EXPECT_GT(other["nll_difference_error"], 0);
  EXPECT_LT(other["nll_difference_error"], other["nll_error"]);
}

TEST_F(Perplexity, RefusesLogitsOfAnotherRun) {
  const std::string saved = folder_ / "logits";
  run_json({"perplexity", model_, "--text", "hello", "--save-logits", saved, "--json"});
  const auto against = [&](const std::string& text, const std::string& window) {
    return run_program(
        {"perplexity", model_, "--text", text, "--window", window, "--kl-against", saved});
  };
  expect_refusal(against("hellp", "192"), 1, {saved, "another text"});
  expect_refusal(against("hello!", "192"), 1, {saved, "number of tokens"});
  expect_refusal(against("hello", "16"), 1, {saved, "--window"});
  expect_refusal(run_program({"perplexity", model_, "--text", "hello", "--kl-against", model_}), 1,
                 {model_, "not a file of logits"});
}

TEST_F(Perplexity, RefusesWhatCannotBeScored) {
  expect_refusal(run_program({"perplexity", model_}), 2, {"--file"});
  expect_refusal(run_program({"perplexity", model_, "--text", "h"}), 1, {"2 tokens"});
  expect_refusal(run_program({"perplexity", model_, "--ids", "1,900"}), 1, {"900"});
  expect_refusal(run_program({"perplexity", model_, "--text", "hello", "--window", "193"}), 1,
                 {"193", "192"});
  expect_refusal(
      run_program({"perplexity", model_, "--text", "hello", "--window", "8", "--stride", "8"}), 2,
      {"--stride"});
  const ProgramRun run = run_program({"perplexity", model_, "--text", "hello there"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("windows of 192, stride 96"));
}

}  // namespace
}  // namespace edgerunner::test
