#include "chat/jinja/source.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace edgerunner::jinja {

Source::Source(std::string_view text) {
  if (text.size() > kMostBytes) {
    throw Error(
        ErrorCode::invalid_file,
        fmt::format("the chat template has {} bytes; the limit is {}", text.size(), kMostBytes));
  }
  if (!is_utf8(text)) throw Error(ErrorCode::invalid_file, "the chat template is not valid UTF-8");
  text_.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      text_.push_back(text[i]);
    } else {
      text_.push_back('\n');
      if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
    }
  }
  if (text_.ends_with('\n')) text_.pop_back();
}

Error Source::error(ErrorCode code, std::size_t offset, std::string_view what) const {
  const std::string_view before = std::string_view(text_).substr(0, std::min(offset, text_.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t newline = before.rfind('\n');
  const std::string_view row =
      newline == std::string_view::npos ? before : before.substr(newline + 1);
  const auto column = 1 + std::count_if(row.begin(), row.end(), [](char c) {
                        return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
                      });
  const std::string_view mark = code == ErrorCode::unsupported ? "not supported: " : "";
  return Error(code,
               fmt::format("chat template, line {}, column {}: {}{}", line, column, mark, what));
}

}  // namespace edgerunner::jinja
