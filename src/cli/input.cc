#include "cli/input.h"

#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <system_error>

#include "cli/usage_error.h"
#include "edgerunner/error.h"

namespace edgerunner::cli {

std::string read_file(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    throw Error(ErrorCode::io, fmt::format("{} is a directory, not a file of text", path));
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  try {
    if (file) text.assign(std::istreambuf_iterator<char>(file), {});
  } catch (const std::ios_base::failure&) {  // of the buffer, which has set errno
    file.setstate(std::ios_base::badbit);
  }
  if (!file || file.bad()) {
    throw Error(ErrorCode::io,
                fmt::format("cannot read {}: {}", path, std::generic_category().message(errno)));
  }
  return text;
}

namespace {

std::string read_standard_input() {
  std::string text;
  std::array<char, 65536> buffer;
  while (true) {
    const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count == 0) return text;
    if (count > 0) {
      text.append(buffer.data(), static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      throw Error(ErrorCode::io, fmt::format("cannot read standard input: {}",
                                             std::generic_category().message(errno)));
    }
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

template <typename Number>
std::vector<Number> parse_list(std::string_view text, std::string_view option) {
  std::vector<Number> numbers;
  if (trim(text).empty()) throw UsageError(fmt::format("{} holds no numbers", option));
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view item = trim(text.substr(0, comma));
    Number number{};
    const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), number);
    if (error != std::errc{} || end != item.data() + item.size() || number < 0) {
      throw UsageError(fmt::format("{}: '{}' is not a number from 0 to {}", option, item,
                                   std::numeric_limits<Number>::max()));
    }
    numbers.push_back(number);
    if (comma == std::string_view::npos) return numbers;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

void InputOptions::add_to(CLI::App& command, const std::string& text_option, bool with_ids) {
  command.add_option(text_option, text, "The text itself");
  command.add_option("--file", file, "A file that holds the text");
  if (with_ids) command.add_option("--ids", ids, "Token ids instead of text, as 1,2,3");
  command.add_option("source", dash, "- reads the text from standard input")
      ->check(CLI::IsMember({"-"}));
}

void InputOptions::check(const std::string& sources) const {
  const int given = static_cast<int>(text.has_value()) + static_cast<int>(file.has_value()) +
                    static_cast<int>(ids.has_value()) + static_cast<int>(!dash.empty());
  if (given != 1) throw UsageError(fmt::format("give exactly one of {}", sources));
}

std::string InputOptions::read_text() const {
  if (text) return *text;
  return file ? read_file(*file) : read_standard_input();
}

std::vector<TokenId> parse_ids(std::string_view text) { return parse_list<TokenId>(text, "--ids"); }

std::vector<std::uint32_t> parse_numbers(std::string_view text, std::string_view option) {
  return parse_list<std::uint32_t>(text, option);
}

}  // namespace edgerunner::cli
