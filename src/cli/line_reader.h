#pragma once

#include <memory>
#include <optional>
#include <string>

namespace edgerunner::cli {

// Reads what a user types: with editing and history on a terminal, else line by line as it is.
class LineReader {
 public:
  LineReader();
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // One input without its line end; nothing at the end. A line that ends with a backslash goes on
  // in the next one; a line that begins with """ begins a text of several lines, up to """.
  std::optional<std::string> read();

  bool is_terminal() const { return editor_ != nullptr; }

 private:
  struct Editor;

  std::optional<std::string> read_line(bool first);

  std::unique_ptr<Editor> editor_;  // null without a terminal
};

}  // namespace edgerunner::cli
