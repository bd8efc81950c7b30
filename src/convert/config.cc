#include "convert/config.h"

#include <fmt/format.h>

#include <cmath>

#include "base/mapped_file.h"
#include "base/parse_json.h"
#include "edgerunner/error.h"

namespace edgerunner::convert {
namespace {

// No count of a real model comes near; products of two stay below 2^64.
constexpr std::uint64_t kMaxValue = std::uint64_t{1} << 31;

}  // namespace

nlohmann::json read_json(const std::filesystem::path& path) {
  const MappedFile file(path);
  const auto* begin = reinterpret_cast<const char*>(file.bytes().data());
  try {
    return parse_json<nlohmann::json>({begin, file.bytes().size()});
  } catch (const std::exception& error) {
    throw Error(ErrorCode::invalid_file,
                fmt::format("{} is not valid JSON: {}", path.string(), error.what()));
  }
}

Config::Config(const nlohmann::json& object, std::string where)
    : object_(&object), where_(std::move(where)) {
  if (!object.is_object()) {
    throw Error(ErrorCode::invalid_file, fmt::format("{}: must be a JSON object", where_));
  }
}

const nlohmann::json* Config::find(std::string_view key) const {
  const auto found = object_->find(key);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

void Config::refuse(std::string_view key, std::string_view why) const {
  throw Error(ErrorCode::invalid_file, fmt::format("{}: '{}' {}", where_, key, why));
}

void Config::unsupported(std::string_view what) const {
  throw Error(ErrorCode::unsupported, fmt::format("{}: {}", where_, what));
}

std::optional<std::uint32_t> Config::find_uint(std::string_view key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_unsigned()) refuse(key, "must be an integer that is not negative");
  const auto number = value->get<std::uint64_t>();
  if (number > kMaxValue) refuse(key, fmt::format("is {}, which no model has", number));
  return static_cast<std::uint32_t>(number);
}

std::uint32_t Config::uint(std::string_view key) const {
  const auto value = find_uint(key);
  if (!value) refuse(key, "is missing");
  if (*value == 0) refuse(key, "is 0");
  return *value;
}

std::optional<double> Config::find_float(std::string_view key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) refuse(key, "must be a number");
  const auto number = value->get<double>();
  if (!std::isfinite(number) || std::abs(number) > 1e30) refuse(key, "is too large");
  return number;
}

double Config::float_value(std::string_view key) const {
  const auto value = find_float(key);
  if (!value) refuse(key, "is missing");
  return *value;
}

std::optional<bool> Config::find_bool(std::string_view key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) refuse(key, "must be true or false");
  return value->get<bool>();
}

std::optional<std::string> Config::find_string(std::string_view key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) refuse(key, "must be a string");
  return value->get<std::string>();
}

std::optional<Config> Config::find_object(std::string_view key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::nullopt;
  return Config(*value, fmt::format("{}: {}", where_, key));
}

}  // namespace edgerunner::convert
