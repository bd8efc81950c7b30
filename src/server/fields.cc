#include "server/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "server/api_error.h"

namespace edgerunner::server {

const Json* Fields::find(std::string_view name) const {
  const auto member = object_.find(std::string(name));
  return member == object_.end() || member->is_null() ? nullptr : &*member;
}

const Json& Fields::require(std::string_view name) const {
  const Json* member = find(name);
  if (member == nullptr) fail(name, "is missing");
  return *member;
}

std::optional<bool> Fields::boolean(std::string_view name) const {
  const Json* member = find(name);
  if (member == nullptr) return std::nullopt;
  if (!member->is_boolean()) fail(name, "must be true or false");
  return member->get<bool>();
}

std::optional<double> Fields::number(std::string_view name, double low, double high) const {
  const Json* member = find(name);
  if (member == nullptr) return std::nullopt;
  const double value = member->is_number() ? member->get<double>() : std::nan("");
  if (!(value >= low && value <= high)) {
    fail(name, std::isinf(high) ? fmt::format("must be a number of at least {}", low)
                                : fmt::format("must be a number from {} to {}", low, high));
  }
  return value;
}

std::optional<std::int64_t> Fields::integer(std::string_view name, std::int64_t low,
                                            std::int64_t high) const {
  const Json* member = find(name);
  if (member == nullptr) return std::nullopt;
  const bool fits = member->is_number_unsigned()
                        ? member->get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX)
                        : member->is_number_integer();
  const std::int64_t value = fits ? member->get<std::int64_t>() : 0;
  if (!fits || value < low || value > high) {
    fail(name, fmt::format("must be an integer from {} to {}", low, high));
  }
  return value;
}

std::optional<std::string> Fields::text(std::string_view name) const {
  const Json* member = find(name);
  if (member == nullptr) return std::nullopt;
  if (!member->is_string()) fail(name, "must be a string");
  return member->get<std::string>();
}

std::optional<std::string> Fields::choice(std::string_view name,
                                          std::initializer_list<std::string_view> allowed) const {
  std::optional<std::string> value = text(name);
  if (value && std::find(allowed.begin(), allowed.end(), *value) == allowed.end()) {
    fail(name, fmt::format("must be one of {}", fmt::join(allowed, ", ")));
  }
  return value;
}

const Json* Fields::array(std::string_view name) const {
  const Json* member = find(name);
  if (member != nullptr && !member->is_array()) fail(name, "must be an array");
  return member;
}

const Json* Fields::object(std::string_view name) const {
  const Json* member = find(name);
  if (member != nullptr && !member->is_object()) fail(name, "must be an object");
  return member;
}

void Fields::refuse_unless(std::string_view name, const Json& neutral,
                           std::string_view advice) const {
  const Json* member = find(name);
  if (member != nullptr && *member != neutral) fail(name, std::string(advice));
}

void Fields::fail(std::string_view name, const std::string& problem) const {
  throw bad_request(path_ + std::string(name), problem);
}

}  // namespace edgerunner::server
