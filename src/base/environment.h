#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace edgerunner {

// Every environment variable that EdgeRunner reads stands in this table; nothing else calls getenv.
struct EnvironmentVariable {
  std::string_view name;
  std::string_view purpose;
};
std::span<const EnvironmentVariable> environment_variables();

// The value of a variable of the table, or nullopt where it is unset or empty.
std::optional<std::string> environment(std::string_view name);

}  // namespace edgerunner
