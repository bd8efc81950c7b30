#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/documents/command_tree.h"
#include "cli/output.h"
#include "cli/version.h"

namespace edgerunner::cli {

// Not for users, but for the build, which installs what it prints.
void add_documents_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("documents", "Print the man page or a completion");
  command->group("");
  const auto kind = std::make_shared<std::string>();
  command->add_option("KIND", *kind, "Which")
      ->required()
      ->check(CLI::IsMember({"man", "bash", "zsh", "fish"}));
  command->callback([kind, &program] {
    const std::vector<CommandText> commands = command_texts(program);
    write_output(*kind == "man"    ? man_page(commands, kVersion)
                 : *kind == "bash" ? bash_completion(commands)
                 : *kind == "zsh"  ? zsh_completion(commands)
                                   : fish_completion(commands));
  });
}

}  // namespace edgerunner::cli
