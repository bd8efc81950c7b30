#pragma once

#include <vector>

#include "chat/jinja/evaluator.h"
#include "chat/jinja/value.h"

namespace edgerunner::jinja {

// What filters take as `attribute`: "address.city", "items.0", a number, or none for the item
// itself.
class AttributePath {
 public:
  AttributePath(Evaluator& evaluator, const Value& attribute);

  // `fallback`, where it is not none, stands for what is undefined on the way.
  Value of(Evaluator& evaluator, const Value& item, const Value& fallback = {}) const;

 private:
  std::vector<Value> parts_;
};

// Strings in lower case, where case does not matter to a filter.
Value without_case(Evaluator& evaluator, const Value& value);

}  // namespace edgerunner::jinja
