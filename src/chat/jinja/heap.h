#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chat/jinja/budget.h"
#include "chat/jinja/value.h"

namespace edgerunner::jinja {

// What the template did wrong, in words; the evaluator adds where.
struct Failure {
  std::string what;
  bool unsupported = false;  // by us, not by Jinja
  bool raised = false;       // by the template itself (raise_exception)
};
[[noreturn]] void fail(std::string what);
[[noreturn]] void fail_unsupported(std::string what);

// Makes values in a rendering's memory.
class Heap {
 public:
  explicit Heap(Budget& budget) : budget_(budget) {}

  Budget& budget() { return budget_; }

  Value string(std::string_view text, bool markup = false) {
    return Value::string(budget_.copy(text), markup);
  }
  // Two strings one after the other, without a copy in between.
  Value join(std::string_view a, std::string_view b, bool markup = false);

  Value undefined(std::string_view message);
  Value list(std::span<const Value> items) { return sequence(Kind::list, items); }
  Value tuple(std::span<const Value> items) { return sequence(Kind::tuple, items); }
  Value pair(const Value& a, const Value& b);
  Value iterator(std::span<const Value> items, std::string_view type = "generator");
  List copy(std::span<const Value> items);

  Dict* dict(std::size_t capacity = 0);
  // Sets the value of a key that may be there; the caller has made sure that it is hashable.
  void set(Dict& dict, const Value& key, const Value& value);
  void append(Dict& dict, const Value& key, const Value& value);  // of a key that is not there

  template <typename T>
  T* make(const T& value) {
    return new (budget_.allocate(sizeof(T), alignof(T))) T(value);
  }

 private:
  Value sequence(Kind kind, std::span<const Value> items);

  Budget& budget_;
};

}  // namespace edgerunner::jinja
