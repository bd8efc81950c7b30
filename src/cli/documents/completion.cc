#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "cli/documents/command_tree.h"

namespace edgerunner::cli {
namespace {

// The names that a positional argument of a command may take, as a command that prints them.
std::string names_command(const CommandText& command) {
  return command.name == "pull" ? "edgerunner list --known" : "edgerunner list";
}

std::string option_names(const CommandText& command) {
  std::string names;
  for (const OptionText& option : command.options) {
    if (!option.positional) names += (names.empty() ? "" : " ") + option.name;
  }
  return names;
}

std::string command_names(const std::vector<CommandText>& commands) {
  std::string names;
  for (std::size_t i = 1; i < commands.size(); ++i) {
    names += (names.empty() ? "" : " ") + commands[i].name;
  }
  return names;
}

// `text` with each character of `special` behind a backslash, and each ' as a shell's '...' takes
// it.
std::string quoted(std::string_view text, std::string_view special) {
  std::string safe;
  for (const char c : text) {
    if (c == '\'') {
      safe += "'\\''";
    } else {
      if (special.find(c) != std::string_view::npos) safe += '\\';
      safe += c;
    }
  }
  return safe;
}

}  // namespace

std::string bash_completion(const std::vector<CommandText>& commands) {
  std::string values;
  std::string options;
  for (const CommandText& command : commands) {
    options += fmt::format("    {}) words=\"{}\" ;;\n", command.name, option_names(command));
    for (const OptionText& option : command.options) {
      if (option.positional || option.value.empty()) continue;
      const std::string made =
          option.choices.empty() ? "compgen -f"
                                 : fmt::format("compgen -W \"{}\"", fmt::join(option.choices, " "));
      values += fmt::format("    \"{} {}\") COMPREPLY=($({} -- \"$cur\")); return ;;\n",
                            command.name, option.name, made);
    }
  }
  return fmt::format(R"sh(# bash completion of edgerunner
_edgerunner() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}}
  local command=${{COMP_WORDS[1]}} words names="edgerunner list"
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "{} {}" -- "$cur"))
    return
  fi
  case "$command $prev" in
{}  esac
  case "$command" in
{}  esac
  if [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
    return
  fi
  [[ $command != pull ]] || names="edgerunner list --known"
  COMPREPLY=($(compgen -f -- "$cur") $(compgen -W "$($names 2>/dev/null | cut -d' ' -f1)" -- "$cur"))
}}
complete -o filenames -F _edgerunner edgerunner
)sh",
                     command_names(commands), option_names(commands.front()), values, options);
}

std::string zsh_completion(const std::vector<CommandText>& commands) {
  std::string of_program;
  for (const OptionText& option : commands.front().options) {
    of_program += fmt::format("    '{}:{}'\n", option.name, quoted(option.description, ":"));
  }
  std::string list;
  std::string cases;
  for (std::size_t i = 1; i < commands.size(); ++i) {
    const CommandText& command = commands[i];
    list += fmt::format("    '{}:{}'\n", command.name, quoted(command.description, ":"));
    cases += fmt::format("    {})\n      names='{}'\n      _arguments \\\n", command.name,
                         names_command(command));
    for (const OptionText& option : command.options) {
      if (option.positional) continue;
      std::string value;
      if (!option.choices.empty()) {
        value = fmt::format(":{}:({})", option.value, fmt::join(option.choices, " "));
      } else if (!option.value.empty()) {
        value = fmt::format(":{}:_files", option.value);
      }
      cases += fmt::format("        '*{}[{}]{}' \\\n", option.name,
                           quoted(option.description, "[]:\\"), value);
    }
    cases += "        '*:model:_edgerunner_models'\n      ;;\n";
  }
  return fmt::format(R"sh(#compdef edgerunner
_edgerunner_models() {{
  compadd -- ${{(f)"$(${{=names}} 2>/dev/null | cut -d' ' -f1)"}}
  _files
}}
_edgerunner() {{
  local names
  local -a commands=(
{}  )
  local -a options=(
{}  )
  if ((CURRENT == 2)); then
    _describe command commands
    _describe -o option options
    return
  fi
  shift words
  ((CURRENT--))
  case $words[1] in
{}  esac
}}
_edgerunner "$@"
)sh",
                     list, of_program, cases);
}

std::string fish_completion(const std::vector<CommandText>& commands) {
  std::string script = "# fish completion of edgerunner\n";
  for (const OptionText& option : commands.front().options) {
    script += fmt::format("complete -c edgerunner -n __fish_use_subcommand -l {} -d '{}'\n",
                          option.name.substr(2), quoted(option.description, "\\"));
  }
  for (std::size_t i = 1; i < commands.size(); ++i) {
    const CommandText& command = commands[i];
    script += fmt::format("complete -c edgerunner -f -n __fish_use_subcommand -a {} -d '{}'\n",
                          command.name, quoted(command.description, "\\"));
    const std::string when =
        fmt::format("complete -c edgerunner -n '__fish_seen_subcommand_from {}'", command.name);
    script += fmt::format("{} -a '({} 2>/dev/null | string split -f1 \" \")'\n", when,
                          names_command(command));
    for (const OptionText& option : command.options) {
      if (option.positional) continue;
      std::string value;
      if (!option.choices.empty()) {
        value = fmt::format(" -x -a '{}'", fmt::join(option.choices, " "));
      } else if (!option.value.empty()) {
        value = " -r";
      }
      script += fmt::format("{} -l {}{} -d '{}'\n", when, option.name.substr(2), value,
                            quoted(option.description, "\\"));
    }
  }
  return script;
}

}  // namespace edgerunner::cli
