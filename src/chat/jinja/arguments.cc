#include "chat/jinja/arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "chat/jinja/compare.h"
#include "chat/jinja/heap.h"

namespace edgerunner::jinja {

const Value* Arguments::find(std::string_view name) const {
  for (const auto& [key, value] : named) {
    if (key == name) return &value;
  }
  return nullptr;
}

Parameters::Parameters(std::string_view callee, const Arguments& arguments,
                       std::initializer_list<std::string_view> names, std::size_t required)
    : callee_(callee), names_(names), values_(names.size(), nullptr) {
  if (arguments.positional.size() > names.size()) {
    fail(fmt::format("{} takes at most {} arguments", callee, names.size()));
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    values_[i] = &arguments.positional[i];
  }
  for (const auto& [name, value] : arguments.named) {
    const auto* const found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) fail(fmt::format("{} has no parameter '{}'", callee, name));
    const Value*& slot = values_[static_cast<std::size_t>(found - names.begin())];
    if (slot != nullptr) fail(fmt::format("{}: '{}' is given twice", callee, name));
    slot = &value;
  }
  for (std::size_t i = 0; i < required; ++i) {
    if (!has(i)) fail(fmt::format("{} needs '{}'", callee, names.begin()[i]));
  }
}

std::string_view Parameters::text(std::size_t i, std::string_view fallback) const {
  if (!has(i)) return fallback;
  if (values_[i]->is_string()) return values_[i]->as_string();
  fail(fmt::format("{}: '{}' must be a string, not '{}'", callee_, names_.begin()[i],
                   type_name(*values_[i])));
}

std::int64_t Parameters::integer(std::size_t i, std::int64_t fallback) const {
  if (!has(i)) return fallback;
  if (values_[i]->is_integral()) return values_[i]->as_integer();
  fail(fmt::format("{}: '{}' must be an integer, not '{}'", callee_, names_.begin()[i],
                   type_name(*values_[i])));
}

bool Parameters::truth(std::size_t i, bool fallback) const {
  return has(i) ? jinja::truth(*values_[i]) : fallback;
}

}  // namespace edgerunner::jinja
