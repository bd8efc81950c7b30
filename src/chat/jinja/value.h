#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace edgerunner::jinja {

struct Statement;

enum class Kind : std::uint8_t {
  undefined,
  none,
  boolean,
  integer,
  floating,
  string,
  list,
  tuple,
  dict,
  view,       // of a dict: keys, values or items
  range,      //
  iterator,   // what is used up by going through it: what map, select, reversed, ... give
  space,      // namespace(...)
  macro,      //
  function,   // a global: range, dict, namespace, ...
  method,     // a value's method, bound to it
  loop,       // the variable of a for loop
  cycler,     //
  joiner,     //
  block_ref,  // self.name
  self,       //
};

class Value;
struct Dict;
struct Scope;
struct Loop;

// The structures behind values. All live in the rendering's Budget and are never freed before it.
struct Undefined {
  std::string_view message;  // of the error where it is used
};

struct List {
  Value* items = nullptr;
  std::size_t size = 0;
};

struct View {
  enum class Part : std::uint8_t { keys, values, items };
  const Dict* dict;
  Part part;
};

struct Range {
  std::int64_t start;
  std::int64_t stop;
  std::int64_t step;
  std::size_t size;
  std::int64_t at(std::size_t i) const { return start + static_cast<std::int64_t>(i) * step; }
};

struct Iterator {
  List list;
  std::size_t next = 0;
  std::string_view type = "generator";
};

struct Macro {
  const Statement* definition;
  Scope* scope;           // where it was defined
  std::string_view name;  // empty for a call block's
};

struct Cycler {
  List list;
  std::size_t next = 0;
};

struct Joiner {
  std::string_view separator;
  bool used = false;
};

struct Method;  // in methods.h

// A value of the template language, which is Python's. Cheap to copy; what it points to lives as
// long as the rendering.
class Value {
 public:
  Value() : Value(Kind::none) {}
  Value(bool value) : kind_(Kind::boolean), integer_(value ? 1 : 0) {}  // NOLINT
  Value(double value) : kind_(Kind::floating), floating_(value) {}      // NOLINT
  Value(const void*) = delete;                                          // which would be a boolean
  static Value integer(std::int64_t value) {
    Value made(Kind::integer);
    made.integer_ = value;
    return made;
  }
  // `text` must live as long as the rendering. `markup`: it is HTML already, as Markup is.
  static Value string(std::string_view text, bool markup = false) {
    Value made(Kind::string);
    made.flag_ = markup;
    made.text_ = text.data();
    made.size_ = text.size();
    return made;
  }
  // A list, dict, ... by its structure. `named`: a tuple whose items are also `grouper` and `list`.
  static Value object(Kind kind, const void* pointer, bool named = false) {
    Value made(kind);
    made.flag_ = named;
    made.pointer_ = pointer;
    return made;
  }
  static Value undefined(const Undefined* about) { return object(Kind::undefined, about); }

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_undefined() const { return kind_ == Kind::undefined; }
  bool is_none() const { return kind_ == Kind::none; }
  bool is_string() const { return kind_ == Kind::string; }
  bool is_sequence() const { return kind_ == Kind::list || kind_ == Kind::tuple; }
  bool is_integral() const { return kind_ == Kind::integer || kind_ == Kind::boolean; }
  bool is_number() const { return is_integral() || kind_ == Kind::floating; }
  bool flag() const { return flag_; }  // markup, or named

  bool as_bool() const { return integer_ != 0; }
  std::int64_t as_integer() const { return integer_; }  // of a boolean too
  double as_double() const {                            // of any number
    return kind_ == Kind::floating ? floating_ : static_cast<double>(integer_);
  }
  std::string_view as_string() const { return {text_, size_}; }
  // The structure, of the type that belongs to the kind.
  template <typename T>
  T* as() const {
    return static_cast<T*>(const_cast<void*>(pointer_));
  }
  std::span<const Value> items() const {  // of a list or tuple
    return {as<List>()->items, as<List>()->size};
  }
  const void* identity() const { return pointer_; }

 private:
  explicit Value(Kind kind) : kind_(kind), integer_(0) {}

  Kind kind_;
  bool flag_ = false;
  union {
    std::int64_t integer_;
    double floating_;
    const char* text_;
    const void* pointer_;
  };
  std::size_t size_ = 0;  // of a string
};

// In the order of insertion, as Python's.
struct Dict {
  struct Entry {
    Value key;
    Value value;
  };
  Entry* entries = nullptr;
  std::size_t size = 0;
  std::size_t capacity = 0;
  std::span<const Entry> all() const { return {entries, size}; }
};

// The type's name in Python, for messages.
std::string_view type_name(const Value& value);

}  // namespace edgerunner::jinja
