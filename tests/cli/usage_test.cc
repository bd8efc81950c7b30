#include <filesystem>
#include <utility>

#include "program_test.h"

namespace edgerunner::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

using Usage = ProgramTest;

TEST_F(Usage, VersionAndHelpSucceed) {
  const ProgramRun version = run_program({"--version"});
  EXPECT_EQ(version.status, 0);
  EXPECT_THAT(version.out, StartsWith("edgerunner "));
  const ProgramRun help = run_program({"--help"});
  EXPECT_EQ(help.status, 0);
  for (const char* command : {"info", "tokenize", "detokenize", "logits", "generate", "bench"}) {
    EXPECT_THAT(help.out, HasSubstr(command));
    const ProgramRun own = run_program({command, "--help"});
    EXPECT_EQ(own.status, 0);
    EXPECT_THAT(own.out, HasSubstr("MODEL"));
  }
}

TEST_F(Usage, NamesWhatIsWrongWithTheCommandLine) {
  expect_refusal(run_program({}), 2, {"--help"});
  expect_refusal(run_program({"frobnicate"}), 2, {"frobnicate"});
  expect_refusal(run_program({"info"}), 2, {"MODEL"});
  expect_refusal(run_program({"info", model_, "--bogus"}), 2, {"--bogus"});
  expect_refusal(run_program({"info", model_, "--backend", "abacus"}), 2, {"abacus"});
  expect_refusal(run_program({"info", model_, "--threads", "many"}), 2, {"--threads", "many"});
  expect_refusal(run_program({"info", model_, "--threads", "0"}), 2, {"--threads"});
  expect_refusal(run_program({"info", model_, "--context", "-5"}), 2, {"--context"});
  expect_refusal(run_program({"serve", model_, "--api-key", ""}), 2, {"--api-key", "empty"});
  expect_refusal(run_program({"serve", model_, "--host", ""}), 2, {"--host", "empty"});
}

TEST_F(Usage, RefusesNumbersByNameInFewWords) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> wrong = {
      {"--temperature", {"inf", "nan", "-1", "1x"}},
      {"--repeat-penalty", {"0", "inf"}},
      {"--context", {"0", "-5"}},
      {"--seed", {"18446744073709551616", "-1", "1.5", "0x10"}},
  };
  for (const auto& [option, values] : wrong) {
    for (const std::string& value : values) {
      const ProgramRun run = run_program({"generate", model_, "--prompt", "x", option, value});
      expect_refusal(run, 2, {option, "'" + value + "'"});
      EXPECT_LT(run.err.size(), 200U) << run.err;
    }
  }
}

TEST_F(Usage, TakesEverySeedOf64BitsAsADecimalNumber) {
  const auto text = [&](const std::string& seed) {
    const ProgramRun run = run_program({"generate", model_, "--prompt", "x", "--max-tokens", "16",
                                        "--temperature", "3", "--ignore-eos", "--seed", seed});
    EXPECT_EQ(run.status, 0) << run.err;
    return run.out;
  };
  EXPECT_NE(text("18446744073709551615"), text("18446744073709551614"));
  EXPECT_EQ(text("010"), text("10"));
}

TEST_F(Usage, RefusesChoicesThatThisBuildLacks) {
  expect_refusal(run_program({"info", model_, "--backend", "cuda"}), 1, {"cuda", "not built"});
  expect_refusal(run_program({"info", model_, "--kv", "q4"}), 2, {"--kv", "q4"});
}

TEST_F(Usage, EveryCommandRefusesWhatIsNoModel) {
  const std::string text = write_file("notes.txt", "These are notes, not a model.\n");
  const std::string empty = write_file("empty.gguf", "");
  const std::string cut = write_file("cut.gguf", "");
  std::filesystem::copy_file(model_, cut, std::filesystem::copy_options::overwrite_existing);
  std::filesystem::resize_file(cut, std::filesystem::file_size(model_) / 2);
  const std::string missing = folder_ / "missing.gguf";
  const std::vector<std::vector<std::string>> commands = {
      {"info"},
      {"tokenize", "--text", "x"},
      {"detokenize", "--ids", "1"},
      {"logits", "--ids", "1"},
      {"generate", "--prompt", "x"},
      {"bench"},
  };
  for (std::vector<std::string> command : commands) {
    SCOPED_TRACE(command.front());
    command.insert(command.begin() + 1, "");
    for (const std::string& path : {text, empty, cut, missing, folder_.path().string()}) {
      command[1] = path;
      expect_refusal(run_program(command), 1, {path});
    }
  }
}

TEST_F(Usage, ReportsOutputThatCannotBeWritten) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full on this system";
  const std::vector<std::vector<std::string>> commands = {
      {"info", model_},
      {"tokenize", model_, "--text", "x"},
      {"detokenize", model_, "--ids", "70"},
      {"logits", model_, "--ids", "70"},
      {"logits", model_, "--ids", "70", "--json"},
      {"generate", model_, "--prompt", "x", "--max-tokens", "4"},
      {"generate", model_, "--prompt", "x", "--max-tokens", "4", "--json"},
      {"bench", model_, "--prompt", "4", "--decode", "0"},
  };
  for (const std::vector<std::string>& command : commands) {
    SCOPED_TRACE(command.front());
    expect_refusal(run_program(command, {.output = "/dev/full"}), 1, {"standard output"});
  }
}

}  // namespace
}  // namespace edgerunner::test
