#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace edgerunner::test {

struct ProgramRun {
  int status = -1;  // exit status, or 128 + the signal that ended it
  std::string out;
  std::string err;
  std::uint64_t peak_bytes = 0;  // of resident memory
  double cpu_seconds = 0;        // of all its threads, however long they waited for a core
};

struct ProgramSetup {
  std::string input;                // standard input
  std::string output;               // a file that standard output goes to; empty: captured
  int signal = 0;                   // sent to the program ...
  std::string signal_after_output;  // ... once its standard output holds this
};

// Runs the `edgerunner` of this build and waits for its end.
ProgramRun run_program(const std::vector<std::string>& arguments, const ProgramSetup& setup = {});

// Expects a refusal as the command line promises it: the status, nothing on standard output, and
// one line on standard error that begins with "edgerunner: " and holds each of `parts`.
void expect_refusal(const ProgramRun& run, int status, const std::vector<std::string>& parts);

}  // namespace edgerunner::test
