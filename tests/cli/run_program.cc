#include "run_program.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <thread>

namespace edgerunner::test {
namespace {

// A file without a name, gone when closed, so that the program never waits for a pipe to be read.
class Stream {
 public:
  Stream() : file_(std::tmpfile()) {
    if (file_ == nullptr) throw std::runtime_error("no temporary file could be made");
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { std::fclose(file_); }

  int descriptor() const { return ::fileno(file_); }
  void fill(const std::string& text) const {
    std::fwrite(text.data(), 1, text.size(), file_);
    std::rewind(file_);
  }
  // Everything so far, whatever the position that the program shares.
  std::string contents() const {
    std::string text;
    std::array<char, 65536> buffer;
    while (true) {
      const ssize_t count =
          ::pread(descriptor(), buffer.data(), buffer.size(), static_cast<off_t>(text.size()));
      if (count <= 0) return text;
      text.append(buffer.data(), static_cast<std::size_t>(count));
    }
  }

 private:
  std::FILE* file_;
};

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

}  // namespace

ProgramRun run_program(const std::vector<std::string>& arguments, const ProgramSetup& setup) {
  const Stream in;
  const Stream out;
  const Stream err;
  in.fill(setup.input);
  std::vector<std::string> words = {EDGERUNNER_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  const pid_t child = ::fork();
  if (child == 0) {
    // Only async-signal-safe calls until the program runs.
    const int output =
        setup.output.empty() ? out.descriptor() : ::open(setup.output.c_str(), O_WRONLY);
    ::dup2(in.descriptor(), STDIN_FILENO);
    ::dup2(output, STDOUT_FILENO);
    ::dup2(err.descriptor(), STDERR_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  int status = 0;
  if (setup.signal != 0) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (out.contents().find(setup.signal_after_output) == std::string::npos &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ::kill(child, setup.signal);
  }
  rusage usage{};
  ::wait4(child, &status, 0, &usage);

  ProgramRun run;
  run.peak_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  run.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  run.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  run.out = out.contents();
  run.err = err.contents();
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
