#include "cli/documents/command_tree.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace edgerunner::cli {
namespace {

// "cpu", "cuda" of "TEXT:{cpu,cuda}", which is how CLI11 describes a choice.
std::vector<std::string> choices_of(const std::string& type) {
  std::vector<std::string> choices;
  const std::size_t open = type.find('{');
  const std::size_t close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return choices;
  for (std::size_t at = open + 1; at < close;) {
    const std::size_t comma = std::min(type.find(',', at), close);
    choices.push_back(type.substr(at, comma - at));
    at = comma + 1;
  }
  return choices;
}

CommandText describe(const CLI::App& app) {
  CommandText command{.name = app.get_name(), .description = app.get_description()};
  for (const CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    if (option->get_group().empty()) continue;
    OptionText text;
    text.positional = option->get_positional();
    text.name = text.positional ? option->get_name(true) : "--" + option->get_lnames().front();
    text.description = option->get_description();
    text.default_value = option->get_default_str();
    text.required = option->get_required();
    if (option->get_expected_max() > 0) {
      const std::string type = option->get_type_name();
      text.choices = choices_of(type);
      text.value = type.substr(0, type.find_first_of(": "));
      if (text.value.empty()) text.value = "VALUE";
    }
    command.options.push_back(std::move(text));
  }
  return command;
}

}  // namespace

std::vector<CommandText> command_texts(const CLI::App& program) {
  std::vector<CommandText> commands = {describe(program)};
  for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) commands.push_back(describe(*command));
  }
  return commands;
}

}  // namespace edgerunner::cli
