#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace edgerunner::cli {

// One option or positional argument, as --help tells of it.
struct OptionText {
  std::string name;   // --top-k, or MODEL of a positional one
  std::string value;  // what it takes, as INT or TEXT; empty for a flag
  std::string description;
  std::string default_value;         // empty: none
  std::vector<std::string> choices;  // where only these words may be given
  bool positional = false;
  bool required = false;
};

struct CommandText {
  std::string name;
  std::string description;
  std::vector<OptionText> options;  // in the order of --help; hidden ones left out
};

// The program's own options under its own name, then every command that --help shows: what a man
// page and completion are made of, so that neither can say anything else.
std::vector<CommandText> command_texts(const CLI::App& program);

// A page in the form of man(7).
std::string man_page(const std::vector<CommandText>& commands, std::string_view version);

// A script that completes commands, options, their values and models' names.
std::string bash_completion(const std::vector<CommandText>& commands);
std::string zsh_completion(const std::vector<CommandText>& commands);
std::string fish_completion(const std::vector<CommandText>& commands);

}  // namespace edgerunner::cli
