#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/jinja/value.h"

namespace edgerunner::jinja {

// The values that something is called with.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> named;
  const Value* find(std::string_view name) const;
};

// Arguments assigned to the parameters of a built-in function, by place and by name.
class Parameters {
 public:
  // Throws Failure for too many arguments, a name that is none of `names`, a parameter given twice,
  // or one of the first `required` missing.
  Parameters(std::string_view callee, const Arguments& arguments,
             std::initializer_list<std::string_view> names, std::size_t required = 0);

  bool has(std::size_t i) const { return values_[i] != nullptr; }
  const Value& operator[](std::size_t i) const { return *values_[i]; }
  bool is_none(std::size_t i) const { return !has(i) || values_[i]->is_none(); }

  // Of the parameter's type, or what stands for it where it is not given. Throw Failure for another
  // type.
  std::string_view text(std::size_t i, std::string_view fallback = {}) const;
  std::int64_t integer(std::size_t i, std::int64_t fallback = 0) const;
  bool truth(std::size_t i, bool fallback = false) const;

 private:
  std::string_view callee_;
  std::initializer_list<std::string_view> names_;
  std::vector<const Value*> values_;
};

}  // namespace edgerunner::jinja
