#include <cstdio>
#include <filesystem>
#include <regex>
#include <set>

#include "program_test.h"

namespace edgerunner::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::string document(const std::string& kind) {
  const ProgramRun run = run_program({"documents", kind});
  EXPECT_EQ(run.status, 0) << run.err;
  return run.out;
}

// What a shell command prints, standard error included.
std::string shell(const std::string& command) {
  std::FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  ::pclose(pipe);
  return text;
}

bool is_installed(const std::string& program) { return !shell("command -v " + program).empty(); }

std::set<std::string> options_of_help() {
  const std::string help = run_program({"--help-all"}).out;
  const std::regex option("--[a-z][a-z0-9-]*");
  return {std::sregex_token_iterator(help.begin(), help.end(), option), {}};
}

using Documents = ProgramTest;

TEST_F(Documents, HoldEveryOptionThatHelpShows) {
  const std::set<std::string> options = options_of_help();
  EXPECT_THAT(options, Contains("--top-k"));
  EXPECT_THAT(options, Contains("--sha256"));
  const std::string man = document("man");
  const std::string bash = document("bash");
  const std::string zsh = document("zsh");
  const std::string fish = document("fish");
  for (const std::string& option : options) {
    EXPECT_THAT(bash, HasSubstr(option));
    EXPECT_THAT(zsh, HasSubstr(option));
    EXPECT_THAT(fish, HasSubstr("-l " + option.substr(2)));
    if (option == "--help") continue;  // once, for the program
    EXPECT_THAT(man, HasSubstr(std::regex_replace(option, std::regex("-"), "\\-")));
  }
}

TEST_F(Documents, HoldEveryCommand) {
  const std::string man = document("man");
  for (const char* command : {"info", "generate", "chat", "serve", "bench", "quantize", "pull"}) {
    EXPECT_THAT(man, HasSubstr(std::string(".SS edgerunner ") + command));
    EXPECT_THAT(document("fish"), HasSubstr(std::string(" -a ") + command));
  }
  EXPECT_EQ(man.find("documents"), std::string::npos) << "a command that help doesn't show";
}

TEST_F(Documents, AreAManPageThatFormatsWithoutAWarning) {
  if (!is_installed("groff")) GTEST_SKIP() << "groff is not installed";
  const std::string page = write_file("edgerunner.1", document("man"));
  const std::string text =
      shell("groff -man -Wbreak -wmac -wescape -wchar -wmissing -wsyntax -wfont -Tascii " + page +
            " >/dev/null");
  EXPECT_EQ(text, "");
}

TEST_F(Documents, CompleteWhatIsTypedInBash) {
  if (!is_installed("bash")) GTEST_SKIP() << "bash is not installed";
  const std::string script = write_file("completion", document("bash"));
  const auto complete = [&](const std::string& words, int at) {
    return shell("bash -c '. " + script + "; COMP_WORDS=(" + words +
                 ") COMP_CWORD=" + std::to_string(at) + "; _edgerunner; echo ${COMPREPLY[*]}'");
  };
  EXPECT_EQ(complete("edgerunner gen", 1), "generate\n");
  EXPECT_EQ(complete("edgerunner generate --max-t", 2), "--max-tokens\n");
  EXPECT_EQ(complete("edgerunner info --backend ref", 3), "reference\n");
  EXPECT_EQ(complete("edgerunner info " + model_.substr(0, model_.size() - 2), 2), model_ + "\n");
}

TEST_F(Documents, AreAScriptThatZshCanRead) {
  if (!is_installed("zsh")) GTEST_SKIP() << "zsh is not installed";
  EXPECT_EQ(shell("zsh -n " + write_file("_edgerunner", document("zsh"))), "");
}

// fish also says what it would complete.
TEST_F(Documents, CompleteWhatIsTypedInFish) {
  if (!is_installed("fish")) GTEST_SKIP() << "fish is not installed";
  const std::string script = write_file("edgerunner.fish", document("fish"));
  EXPECT_EQ(shell("fish -n " + script), "");
  const auto complete = [&](const std::string& line) {
    const std::string folder = std::filesystem::path(EDGERUNNER_PROGRAM).parent_path().string();
    return shell("HOME=" + folder_.path().string() + " PATH=" + folder +
                 ":$PATH fish --no-config -c 'source " + script + "; complete -C \"" + line +
                 "\"'");
  };
  EXPECT_THAT(complete("edgerunner gen"), ::testing::StartsWith("generate"));
  EXPECT_THAT(complete("edgerunner generate --max-t"), ::testing::StartsWith("--max-tokens"));
  EXPECT_THAT(complete("edgerunner info --backend "), HasSubstr("reference"));
}

TEST_F(Documents, TheVersionTellsTheBuildAndWhatItRunsOn) {
  const nlohmann::json version = run_json({"--version", "--json"});
  EXPECT_THAT(run_program({"--version"}).out,
              HasSubstr("edgerunner " + version["version"].get<std::string>()));
  EXPECT_THAT(version["compiler"].get<std::string>(), HasSubstr("."));
  EXPECT_FALSE(version["commit"].get<std::string>().empty());
  EXPECT_THAT(version["instruction_sets"].get<std::set<std::string>>(),
              Contains(version["instruction_set"].get<std::string>()));
  EXPECT_THAT(version["backends"].get<std::set<std::string>>(), Contains("cpu"));
}

}  // namespace
}  // namespace edgerunner::test
