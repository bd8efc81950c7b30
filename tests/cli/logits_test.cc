#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "program_test.h"
#include "support/model_fixture.h"
#include "support/shared_data.h"

namespace edgerunner::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string id_list(std::size_t count) {
  std::vector<std::size_t> ids(count);
  for (std::size_t i = 0; i < count; ++i) ids[i] = (i * 37 + 5) % kTinyVocab;
  return fmt::format("{}", fmt::join(ids, ","));
}

using Logits = ProgramTest;

TEST_F(Logits, EveryPositionIsTheSameAloneAndTogether) {
  const std::string ids = id_list(150);  // more positions than a batch gives logits for
  const nlohmann::json all =
      run_json({"logits", model_, "--ids", ids, "--positions", "all", "--json"});
  ASSERT_EQ(all["positions"].size(), 150);
  ASSERT_EQ(all["logits"].size(), 150);
  for (const auto& row : all["logits"]) ASSERT_EQ(row.size(), kTinyVocab);
  const nlohmann::json some =
      run_json({"logits", model_, "--ids", ids, "--positions", "100,7", "--json"});
  EXPECT_THAT(some["positions"], ElementsAre(7, 100));
  EXPECT_EQ(some["logits"][0], all["logits"][7]);
  EXPECT_EQ(some["logits"][1], all["logits"][100]);
  const nlohmann::json last = run_json({"logits", model_, "--ids", ids, "--json"});
  EXPECT_THAT(last["positions"], ElementsAre(149));
  EXPECT_EQ(last["logits"][0], all["logits"][149]);
}

TEST_F(Logits, TextNamesTheLikeliestTokens) {
  const nlohmann::json json = run_json({"logits", model_, "--ids", "9,10", "--json"});
  const auto row = json["logits"][0].get<std::vector<double>>();
  const auto best = std::max_element(row.begin(), row.end()) - row.begin();
  const ProgramRun text = run_program({"logits", model_, "--ids", "9,10"});
  EXPECT_THAT(text.out, HasSubstr("position 1: " + std::to_string(best) + "="));
}

TEST_F(Logits, RefusesWhatCannotBeComputed) {
  const auto run = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"logits", model_, "--json"});
    return run_program(options);
  };
  expect_refusal(run({}), 2, {"--ids"});
  expect_refusal(run({"--ids", "1,two"}), 2, {"two"});
  expect_refusal(run({"--ids", "1,259"}), 1, {"259"});
  expect_refusal(run({"--ids", "1,2", "--positions", "first"}), 2, {"first"});
  expect_refusal(run({"--ids", "1,2", "--positions", "0,2"}), 1, {"2"});
  expect_refusal(run({"--ids", id_list(193)}), 1, {"193", "192"});
  expect_refusal(run({"--ids", id_list(9), "--context", "8"}), 1, {"9", "8"});
  expect_refusal(run({"--ids", "1", "--context", "100000"}), 1, {"100000", "192"});
}

// What the program prints against Hugging Face's float64 logits, at the bound of each backend.
class FixtureLogits : public ::testing::TestWithParam<std::string> {};

double largest_error(const ModelFixture& fixture, const std::vector<std::string>& options) {
  std::vector<std::uint32_t> positions;
  for (const auto& [position, row] : fixture.logits) positions.push_back(position);
  std::vector<std::string> arguments = {"logits",
                                        fixture.file.name(),
                                        "--json",
                                        "--ids",
                                        fmt::format("{}", fmt::join(fixture.prompt, ",")),
                                        "--positions",
                                        fmt::format("{}", fmt::join(positions, ","))};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const ProgramRun run = run_program(arguments);
  EXPECT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out, nullptr, false);
  double error = 0;
  std::size_t index = 0;
  for (const auto& [position, expected] : fixture.logits) {
    const auto row = json["logits"][index++].get<std::vector<double>>();
    EXPECT_EQ(row.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      error = std::max(error, std::abs(row[i] - expected[i]));
    }
  }
  return error / fixture.peak;
}

TEST_P(FixtureLogits, AgreeWithTheReferenceData) {
  const ModelFixture fixture = load_fixture(GetParam());
  EXPECT_LE(largest_error(fixture, {"--backend", "reference"}), 1e-5);
  EXPECT_LE(largest_error(fixture, {"--precision", "exact"}), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, FixtureLogits, ::testing::ValuesIn(all_fixtures()),
                         [](const auto& fixture) {
                           std::string name = fixture.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FixtureLogits);

}  // namespace
}  // namespace edgerunner::test
