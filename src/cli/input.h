#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "edgerunner/types.h"

namespace CLI {
class App;
}  // namespace CLI

namespace edgerunner::cli {

// The text or the ids that a command works on, from exactly one of: an option's value, --file, or
// `-` for standard input (and --ids where the command takes them).
struct InputOptions {
  std::optional<std::string> text;
  std::optional<std::string> file;
  std::optional<std::string> ids;
  std::string dash;

  // `text_option` is "--text" or "--prompt".
  void add_to(CLI::App& command, const std::string& text_option, bool with_ids);
  // Throws UsageError unless exactly one source was given, Error(io) where it can't be read.
  std::string read_text() const;
  void check(const std::string& sources) const;
};

// Throws Error(io) where it can't be read.
std::string read_file(const std::string& path);

// "1,2,3" (spaces may surround the numbers). Throws UsageError that shows what is no token id.
std::vector<TokenId> parse_ids(std::string_view text);

// The same for positions, "0,7".
std::vector<std::uint32_t> parse_numbers(std::string_view text, std::string_view option);

}  // namespace edgerunner::cli
