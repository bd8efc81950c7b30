#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace edgerunner::convert {

// Reads a file of JSON. Throws Error(io) where it can't be read, Error(invalid_file) where it is
// not JSON; both name it.
nlohmann::json read_json(const std::filesystem::path& path);

// An object of a JSON file with typed access. Keys that are absent or null are not there; a value
// of another type throws Error(invalid_file) that names the file and the key.
class Config {
 public:
  // `where`, the file and the path within it, is for messages. `object` must outlive this. Throws
  // Error(invalid_file) where it is no object.
  Config(const nlohmann::json& object, std::string where);

  const std::string& where() const { return where_; }
  const nlohmann::json* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }

  std::optional<std::uint32_t> find_uint(std::string_view key) const;  // at most 2^31
  std::optional<double> find_float(std::string_view key) const;        // finite
  std::optional<bool> find_bool(std::string_view key) const;
  std::optional<std::string> find_string(std::string_view key) const;
  std::optional<Config> find_object(std::string_view key) const;

  // At least 1. Throws Error(invalid_file) where it is missing.
  std::uint32_t uint(std::string_view key) const;
  double float_value(std::string_view key) const;

  [[noreturn]] void refuse(std::string_view key, std::string_view why) const;  // invalid_file
  [[noreturn]] void unsupported(std::string_view what) const;

 private:
  const nlohmann::json* object_;
  std::string where_;
};

}  // namespace edgerunner::convert
