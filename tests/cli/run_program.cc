#include "run_program.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

#include "support/temporary_folder.h"

namespace edgerunner::test {
namespace {

std::string read_all(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// In the child: only async-signal-safe calls.
void redirect(const char* path, int flags, int descriptor) {
  const int opened = ::open(path, flags, 0600);
  if (opened < 0 || ::dup2(opened, descriptor) < 0) ::_exit(126);
  if (opened != descriptor) ::close(opened);
}

}  // namespace

ProgramRun run_program(const std::vector<std::string>& arguments, const ProgramSetup& setup) {
  const TemporaryFolder folder;
  const std::string in = folder / "program.in";
  const std::string out = setup.output.empty() ? (folder / "program.out").string() : setup.output;
  const std::string err = folder / "program.err";
  std::ofstream(in, std::ios::binary) << setup.input;

  std::vector<std::string> words = {EDGERUNNER_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  const pid_t child = ::fork();
  if (child == 0) {
    redirect(in.c_str(), O_RDONLY, STDIN_FILENO);
    redirect(out.c_str(), O_WRONLY | O_CREAT, STDOUT_FILENO);
    redirect(err.c_str(), O_WRONLY | O_CREAT, STDERR_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  int status = 0;
  if (setup.signal != 0) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (read_all(out).find(setup.signal_after_output) == std::string::npos &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ::kill(child, setup.signal);
  }
  ::waitpid(child, &status, 0);

  ProgramRun run;
  run.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (setup.output.empty()) run.out = read_all(out);
  run.err = read_all(err);
  return run;
}

void expect_refusal(const ProgramRun& run, int status, const std::vector<std::string>& parts) {
  EXPECT_EQ(run.status, status) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, ::testing::StartsWith("edgerunner: "));
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  for (const std::string& part : parts) EXPECT_THAT(run.err, ::testing::HasSubstr(part));
}

}  // namespace edgerunner::test
