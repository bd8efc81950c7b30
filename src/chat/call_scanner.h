#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace edgerunner {

// Reads one call of a tool as it streams: {"name": "f", "arguments": {...}}, or `parameters` for
// `arguments`, in any order, other members skipped. What the arguments are is passed on as it is
// written.
class CallScanner {
 public:
  enum class State : std::uint8_t {
    more,    // the text so far may become a call
    done,    // the object has ended, with a name
    broken,  // it is no call
  };

  CallScanner() = default;
  // The name is known already; what follows is the arguments' object alone.
  explicit CallScanner(std::string name);

  State push(char c);

  // Whether it is sure enough to be a call to be told: the name is known, the arguments have begun
  // (or the object has ended without).
  bool is_call() const { return has_name_ && (in_arguments_ || depth_done_); }
  const std::string& name() const { return name_; }
  std::string take_arguments();  // since the last call of this

 private:
  enum class Place : std::uint8_t {
    before_object,
    before_key,
    key,
    before_colon,
    before_value,
    value,
    after_value,
    end,
  };

  State key_ended();
  State begin_value(char c);
  State in_value(char c);
  void end_value();
  static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

  Place place_ = Place::before_object;
  std::string key_;
  std::string value_;  // of a member that is no object and may be the name
  std::string name_;
  std::string arguments_;
  bool has_name_ = false;
  bool in_arguments_ = false;  // they have begun
  bool depth_done_ = false;    // the object has ended
  bool bare_ = false;          // the arguments alone
  std::size_t depth_ = 0;      // of brackets within the value
  bool in_string_ = false;
  bool escaped_ = false;
};

}  // namespace edgerunner
