#include "chat/call_scanner.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace edgerunner {
namespace {

// Members that objects of calls have; an object that begins with another is no call.
bool is_known_key(std::string_view key) {
  constexpr std::array<std::string_view, 6> kKeys = {"name", "arguments", "parameters",
                                                     "type", "id",        "function"};
  for (const std::string_view known : kKeys) {
    if (key == known) return true;
  }
  return false;
}

bool is_arguments(std::string_view key) { return key == "arguments" || key == "parameters"; }

// The text of a string in JSON, or nothing.
std::string unquoted(const std::string& json) {
  const auto parsed = nlohmann::json::parse(json, nullptr, false);
  return parsed.is_string() ? parsed.get<std::string>() : std::string();
}

}  // namespace

CallScanner::CallScanner(std::string name)
    : place_(Place::before_value), name_(std::move(name)), has_name_(true), bare_(true) {
  key_ = "arguments";
}

CallScanner::State CallScanner::push(char c) {
  switch (place_) {
    case Place::before_object:
      if (is_space(c)) return State::more;
      place_ = Place::before_key;
      return c == '{' ? State::more : State::broken;
    case Place::before_key:
      if (is_space(c)) return State::more;
      key_ = c;
      place_ = Place::key;
      return c == '"' ? State::more : State::broken;
    case Place::key:
      key_ += c;
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == '"') {
        return key_ended();
      }
      return State::more;
    case Place::before_colon:
      if (is_space(c)) return State::more;
      place_ = Place::before_value;
      return c == ':' ? State::more : State::broken;
    case Place::before_value:
      return is_space(c) ? State::more : begin_value(c);
    case Place::value:
      return in_value(c);
    case Place::after_value:
      if (is_space(c)) return State::more;
      if (c == ',') {
        place_ = Place::before_key;
        return State::more;
      }
      if (c != '}' || !has_name_) return State::broken;
      place_ = Place::end;
      depth_done_ = true;
      if (!in_arguments_) arguments_ = "{}";
      return State::done;
    case Place::end:
      return State::done;
  }
  return State::broken;
}

CallScanner::State CallScanner::key_ended() {
  key_ = unquoted(key_);
  place_ = Place::before_colon;
  return is_known_key(key_) ? State::more : State::broken;
}

CallScanner::State CallScanner::begin_value(char c) {
  place_ = Place::value;
  value_.clear();
  depth_ = 0;
  in_string_ = false;
  escaped_ = false;
  if (is_arguments(key_)) {
    if (c != '{') return State::broken;
    in_arguments_ = true;
  } else if (key_ == "name" && c != '"') {
    return State::broken;
  }
  return in_value(c);
}

// One character of a value: a string, or what stands between brackets that match, or up to a comma
// or the end of the object.
CallScanner::State CallScanner::in_value(char c) {
  const bool scalar_ends = depth_ == 0 && !in_string_ && (c == ',' || c == '}' || c == ']');
  if (scalar_ends) {
    end_value();
    return push(c);
  }
  if (is_arguments(key_)) {
    arguments_ += c;
  } else {
    value_ += c;
  }
  if (in_string_) {
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      in_string_ = false;
      if (depth_ == 0) end_value();
    }
    return State::more;
  }
  if (c == '"') in_string_ = true;
  if (c == '{' || c == '[') ++depth_;
  if (c == '}' || c == ']') {
    --depth_;
    if (depth_ == 0) end_value();
  }
  return place_ == Place::end ? State::done : State::more;
}

void CallScanner::end_value() {
  if (key_ == "name") {
    name_ = unquoted(value_);
    has_name_ = !name_.empty();
  }
  place_ = Place::after_value;
  if (!bare_) return;
  place_ = Place::end;
  depth_done_ = true;
}

std::string CallScanner::take_arguments() { return std::exchange(arguments_, {}); }

}  // namespace edgerunner
