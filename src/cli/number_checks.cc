#include "cli/number_checks.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>

namespace edgerunner::cli {
namespace {

std::optional<double> finite_number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size() || !std::isfinite(value)) return {};
  return value;
}

}  // namespace

CLI::Validator non_negative_number() {
  return {[](std::string& text) {
            const std::optional<double> value = finite_number(text);
            if (value && *value >= 0) return std::string();
            return fmt::format("'{}' is not a finite number from 0 up", text);
          },
          "NONNEGATIVE"};
}

CLI::Validator positive_number() {
  return {[](std::string& text) {
            const std::optional<double> value = finite_number(text);
            if (value && *value > 0) return std::string();
            return fmt::format("'{}' is not a finite number above 0", text);
          },
          "POSITIVE"};
}

CLI::Validator whole_number() {
  return {[](std::string& text) {
            std::uint64_t value = 0;
            const char* const end = text.data() + text.size();
            const auto [last, error] = std::from_chars(text.data(), end, value);
            if (error != std::errc{} || last != end) {
              return fmt::format("'{}' is not a whole number from 0 to {}", text,
                                 std::numeric_limits<std::uint64_t>::max());
            }
            text = fmt::to_string(value);  // without zeros in front, which would mean octal
            return std::string();
          },
          ""};
}

}  // namespace edgerunner::cli
