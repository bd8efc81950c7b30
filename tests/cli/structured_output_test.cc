#include "program_test.h"

namespace edgerunner::test {
namespace {

using ::testing::MatchesRegex;

class StructuredOutput : public ProgramTest {
 protected:
  nlohmann::json generate(const std::string& option, const std::string& text,
                          const std::string& seed) const {
    return run_json({"generate", model_, "--prompt", "he", option, write_file("constraint", text),
                     "--temperature", "3", "--seed", seed, "--max-tokens", "180", "--json"});
  }
};

TEST_F(StructuredOutput, JsonThatEndsSatisfiesItsSchema) {
  const std::string schema = R"({"type": "object", "properties": {"n": {"type": "integer",
      "minimum": 10, "maximum": 99}, "s": {"type": "string", "maxLength": 3}}, "required": ["n"],
      "additionalProperties": false})";
  for (const std::string seed : {"1", "2", "3", "4"}) {
    const nlohmann::json result = generate("--json-schema", schema, seed);
    ASSERT_EQ(result["finish_reason"], "stop") << result;
    const auto made = nlohmann::json::parse(result["text"].get<std::string>());
    EXPECT_GE(made["n"], 10);
    EXPECT_LE(made["n"], 99);
  }
}

TEST_F(StructuredOutput, TextsAreOfTheirGrammar) {
  for (const std::string seed : {"1", "2", "3"}) {
    const nlohmann::json result =
        generate("--grammar", "root ::= (\"ab\" | [x-z]{2})+ \"!\"", seed);
    if (result["finish_reason"] != "stop") continue;
    EXPECT_THAT(result["text"].get<std::string>(), MatchesRegex("((ab)|([xyz][xyz]))+!"));
  }
}

TEST_F(StructuredOutput, WhatCannotBeEnforcedIsRefusedByName) {
  const auto run = [this](const std::string& option, const std::string& text) {
    return run_program({"generate", model_, "--prompt", "he", option, write_file("c", text)});
  };
  expect_refusal(run("--json-schema", R"({"not": {}})"), 1, {"not"});
  expect_refusal(run("--json-schema", "{"), 1, {"JSON schema"});
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  expect_refusal(run("--json-schema", "{\"const\": " + deep + "}"), 1,
                 {"JSON schema", "nested too deeply"});
  expect_refusal(run("--json-schema", R"({"minimum": 1e999})"), 1, {"JSON schema", "1e999"});
  expect_refusal(run("--json-schema", " \n"), 2, {"--json-schema", "is empty"});
  expect_refusal(run("--grammar", ""), 2, {"--grammar", "is empty"});
  expect_refusal(run("--grammar", "root ::= nosuch"), 1, {"line 1", "nosuch"});
  expect_refusal(
      run_program({"generate", model_, "--prompt", "he", "--json-schema", "a", "--grammar", "b"}),
      2, {"--json-schema", "--grammar"});
}

}  // namespace
}  // namespace edgerunner::test
