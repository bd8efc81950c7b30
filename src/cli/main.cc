#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/usage_error.h"
#include "edgerunner/error.h"

namespace edgerunner::cli {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

int report(std::string message, int status) {
  for (char& c : message) {
    if (c == '\n') c = ' ';  // one line, whatever a name in the message holds
  }
  clear_progress();
  fmt::print(stderr, "edgerunner: {}\n", message);
  return status;
}

bool is_command(const CLI::App& program, std::string_view word) {
  const auto commands = program.get_subcommands([](const CLI::App*) { return true; });
  return std::any_of(commands.begin(), commands.end(),
                     [&](const CLI::App* command) { return command->get_name() == word; });
}

int run(int argc, char** argv) {
  CLI::App program("Runs language models from GGUF files.", "edgerunner");
  program.set_version_flag("--version", "edgerunner " EDGERUNNER_VERSION);
  program.require_subcommand(1);
  program.get_formatter()->column_width(34);
  add_info_command(program);
  add_tokenize_command(program);
  add_detokenize_command(program);
  add_logits_command(program);
  add_perplexity_command(program);
  add_verify_command(program);
  add_generate_command(program);
  add_chat_command(program);
  add_render_command(program);
  add_bench_command(program);
  add_profile_command(program);
  add_serve_command(program);
  add_quantize_command(program);
  add_convert_command(program);
  add_imatrix_command(program);
  if (argc > 1 && argv[1][0] != '-' && !is_command(program, argv[1])) {
    return report(fmt::format("'{}' is not a command; see edgerunner --help", argv[1]), kUsage);
  }
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version: CLI11 prints what was asked for
      return program.exit(error);
    }
    const auto chosen = program.get_subcommands();
    const std::string command = chosen.empty() ? "" : " " + chosen.front()->get_name();
    return report(fmt::format("{}; see edgerunner{} --help", error.what(), command), kUsage);
  }
  return 0;
}

}  // namespace
}  // namespace edgerunner::cli

int main(int argc, char** argv) {
  using edgerunner::cli::report;
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away is an error of the write instead
  try {
    return edgerunner::cli::run(argc, argv);
  } catch (const edgerunner::cli::UsageError& error) {
    return report(error.what(), edgerunner::cli::kUsage);
  } catch (const std::bad_alloc&) {
    return report("out of memory", edgerunner::cli::kFailed);
  } catch (const std::exception& error) {
    return report(error.what(), edgerunner::cli::kFailed);
  }
}
