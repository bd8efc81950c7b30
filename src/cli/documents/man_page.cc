#include <fmt/format.h>

#include "base/environment.h"
#include "cli/documents/command_tree.h"

namespace edgerunner::cli {
namespace {

// As roff takes it for plain text: a hyphen that stays one, and no line that looks like a request.
std::string plain(std::string_view text) {
  std::string roff;
  for (const char c : text) {
    if (c == '\\') {
      roff += "\\e";
    } else if (c == '-') {
      roff += "\\-";
    } else if ((c == '.' || c == '\'') && (roff.empty() || roff.back() == '\n')) {
      roff += "\\&";
      roff += c;
    } else {
      roff += c;
    }
  }
  return roff;
}

std::string option_text(const OptionText& option) {
  std::string text = fmt::format(".TP\n\\fB{}\\fR", plain(option.name));
  if (!option.positional && !option.value.empty()) {
    text += fmt::format(" \\fI{}\\fR", plain(option.value));
  }
  text += fmt::format("\n{}", plain(option.description));
  if (!option.choices.empty()) {
    text += fmt::format(" ({})", plain(fmt::format("{}", fmt::join(option.choices, ", "))));
  }
  if (!option.default_value.empty()) {
    text += fmt::format(" [{}]", plain(option.default_value));
  }
  return text + "\n";
}

std::string command_text(const CommandText& command) {
  std::string synopsis = fmt::format("edgerunner {}", command.name);
  std::string options;
  for (const OptionText& option : command.options) {
    if (option.positional) {
      synopsis += option.required ? " " + option.name : fmt::format(" [{}]", option.name);
    }
    if (option.name != "--help") options += option_text(option);
  }
  return fmt::format(".SS {}\n{}.\n{}", plain(synopsis), plain(command.description), options);
}

}  // namespace

std::string man_page(const std::vector<CommandText>& commands, std::string_view version) {
  const CommandText& program = commands.front();
  std::string page = fmt::format(
      ".TH EDGERUNNER 1 \"\" \"edgerunner {}\" \"User Commands\"\n"
      ".SH NAME\nedgerunner \\- runs language models from GGUF files\n"
      ".SH SYNOPSIS\n\\fBedgerunner\\fR \\fICOMMAND\\fR [\\fIoptions\\fR]\n"
      ".SH DESCRIPTION\n"
      "Runs language models from GGUF files: in the terminal, over HTTP, and to be measured.\n"
      "MODEL is the path of a file, or the name of a fetched model.\n"
      "Results go to standard output, everything else to standard error.\n"
      ".SH OPTIONS\n",
      plain(version));
  for (const OptionText& option : program.options) page += option_text(option);
  page += ".SH COMMANDS\n";
  for (std::size_t i = 1; i < commands.size(); ++i) page += command_text(commands[i]);
  page += ".SH ENVIRONMENT\n";
  for (const EnvironmentVariable& variable : environment_variables()) {
    page += fmt::format(".TP\n\\fB{}\\fR\n{}\n", variable.name, plain(variable.purpose));
  }
  return page +
         ".SH EXIT STATUS\n0; 1 where the work failed; 2 where the command line is wrong.\n"
         ".SH FILES\n.TP\n\\fI~/.cache/edgerunner/models\\fR\nfetched models\n";
}

}  // namespace edgerunner::cli
