#pragma once

#include <span>
#include <string_view>

#include "chat/jinja/arguments.h"
#include "chat/jinja/value.h"

namespace edgerunner::jinja {

class Evaluator;

// What templates can call. Each throws Failure where Python or Jinja would raise.
using Filter = Value (*)(Evaluator&, const Value&, const Arguments&);
using Test = bool (*)(Evaluator&, const Value&, const Arguments&);
using Function = Value (*)(Evaluator&, const Arguments&);

template <typename Call>
struct Named {
  std::string_view name;
  Call call;
};

// Null where there is none of the name.
Filter find_filter(std::string_view name);
Test find_test(std::string_view name);
const Named<Function>* find_function(std::string_view name);

// Parts of the table of filters.
std::span<const Named<Filter>> text_filters();
std::span<const Named<Filter>> sequence_filters();
std::span<const Named<Filter>> selecting_filters();
std::span<const Named<Filter>> value_filters();

template <typename Call>
const Named<Call>* find_named(std::span<const Named<Call>> table, std::string_view name) {
  for (const Named<Call>& entry : table) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

}  // namespace edgerunner::jinja
