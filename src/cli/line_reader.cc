#include "cli/line_reader.h"

#include <histedit.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <iostream>
#include <string_view>

namespace edgerunner::cli {
namespace {

constexpr int kHistoryLines = 1000;
constexpr std::string_view kQuotes = "\"\"\"";

char* first_prompt(EditLine* /*editor*/) {
  static char text[] = "> ";
  return text;
}

char* next_prompt(EditLine* /*editor*/) {
  static char text[] = ". ";
  return text;
}

}  // namespace

struct LineReader::Editor {
  EditLine* line;
  History* history;
  HistEvent event{};

  Editor() : line(el_init("edgerunner", stdin, stdout, stderr)), history(history_init()) {
    history_(H_SETSIZE, kHistoryLines);
    el_set(line, EL_EDITOR, "emacs");
    el_set(line, EL_HIST, ::history, history);
  }
  ~Editor() {
    history_end(history);
    el_end(line);
  }
  Editor(const Editor&) = delete;
  Editor& operator=(const Editor&) = delete;

  template <typename Value>
  void history_(int operation, Value value) {
    ::history(history, &event, operation, value);
  }
};

LineReader::LineReader() {
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0) return;
  // The editor counts columns by the characters of the locale; they are UTF-8 whatever it is
  // called.
  const char* const locale = std::setlocale(LC_CTYPE, "");
  if (locale == nullptr || std::string_view(locale) == "C" || std::string_view(locale) == "POSIX") {
    std::setlocale(LC_CTYPE, "C.UTF-8");
  }
  editor_ = std::make_unique<Editor>();
}

LineReader::~LineReader() = default;

std::optional<std::string> LineReader::read_line(bool first) {
  if (!editor_) {
    std::string line;
    if (!std::getline(std::cin, line)) return std::nullopt;
    return line;
  }
  el_set(editor_->line, EL_PROMPT, first ? first_prompt : next_prompt);
  int count = 0;
  const char* const text = el_gets(editor_->line, &count);
  if (text == nullptr || count <= 0) return std::nullopt;
  std::string line(text, static_cast<std::size_t>(count));
  if (line.ends_with('\n')) line.pop_back();
  if (!line.empty()) editor_->history_(H_ENTER, line.c_str());
  return line;
}

std::optional<std::string> LineReader::read() {
  std::optional<std::string> text = read_line(true);
  if (!text) return std::nullopt;
  if (text->starts_with(kQuotes)) {
    text->erase(0, kQuotes.size());
    while (text->find(kQuotes) == std::string::npos) {
      const std::optional<std::string> more = read_line(false);
      if (!more) break;
      if (!text->empty()) *text += '\n';
      *text += *more;
    }
    text->erase(std::min(text->find(kQuotes), text->size()));
    return text;
  }
  while (text->ends_with('\\')) {
    const std::optional<std::string> more = read_line(false);
    if (!more) break;
    text->back() = '\n';
    *text += *more;
  }
  return text;
}

}  // namespace edgerunner::cli
