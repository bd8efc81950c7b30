#include "gguf/typed.h"

#include <limits>
#include <optional>

#include "gguf/fail.h"

namespace edgerunner::gguf {
namespace {

[[noreturn]] void fail_type(std::string_view file, const Value& value, std::string_view wanted) {
  fail(ErrorCode::invalid_file, file,
       "metadata key '{}' must be {} but is {}; the file was written wrongly, so convert it again",
       value.key, wanted, type_name(value));
}

[[noreturn]] void fail_range(std::string_view file, const Value& value, std::string_view wanted) {
  fail(ErrorCode::invalid_file, file,
       "metadata key '{}' must be {} but its value is out of that range; the file was written "
       "wrongly, so convert it again",
       value.key, wanted);
}

// The number of a scalar; nullopt for strings and arrays.
std::optional<Number> scalar(const Value& value) {
  if (value.type == ValueType::array) return std::nullopt;
  return number_at(value);
}

// As a signed integer, where the number is an integer that fits.
std::optional<std::int64_t> fit_int(const Number& number) {
  if (const auto* i = std::get_if<std::int64_t>(&number)) return *i;
  const auto* u = std::get_if<std::uint64_t>(&number);
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (u == nullptr || *u > kMax) return std::nullopt;
  return static_cast<std::int64_t>(*u);
}

}  // namespace

std::uint64_t to_uint(std::string_view file, const Value& value) {
  constexpr std::string_view kWanted = "an unsigned integer";
  const std::optional<Number> number = scalar(value);
  if (!number) fail_type(file, value, kWanted);
  if (const auto* u = std::get_if<std::uint64_t>(&*number)) return *u;
  const auto* i = std::get_if<std::int64_t>(&*number);
  if (i == nullptr) fail_type(file, value, kWanted);
  if (*i < 0) fail_range(file, value, kWanted);
  return static_cast<std::uint64_t>(*i);
}

std::int64_t to_int(std::string_view file, const Value& value) {
  const std::optional<Number> number = scalar(value);
  if (!number || number->index() > 1) fail_type(file, value, "an integer");
  const std::optional<std::int64_t> fitting = fit_int(*number);
  if (!fitting) fail_range(file, value, "a signed 64-bit integer");
  return *fitting;
}

double to_float(std::string_view file, const Value& value) {
  const std::optional<Number> number = scalar(value);
  if (number) {
    if (const auto* d = std::get_if<double>(&*number)) return *d;
    if (const auto* u = std::get_if<std::uint64_t>(&*number)) return static_cast<double>(*u);
    if (const auto* i = std::get_if<std::int64_t>(&*number)) return static_cast<double>(*i);
  }
  fail_type(file, value, "a number");
}

bool to_bool(std::string_view file, const Value& value) {
  const std::optional<Number> number = scalar(value);
  const bool* flag = number ? std::get_if<bool>(&*number) : nullptr;
  if (flag == nullptr) fail_type(file, value, "a boolean");
  return *flag;
}

std::string_view to_text(std::string_view file, const Value& value) {
  if (value.type != ValueType::string) fail_type(file, value, "a string");
  return value.text;
}

std::span<const std::string_view> to_texts(std::string_view file, const Value& value) {
  if (value.type != ValueType::array || value.element_type != ValueType::string) {
    fail_type(file, value, "an array of strings");
  }
  return value.texts;
}

std::vector<std::int64_t> to_ints(std::string_view file, const Value& value) {
  constexpr std::string_view kWanted = "an array of integers";
  switch (value.element_type) {
    case ValueType::f32:
    case ValueType::f64:
    case ValueType::string:
    case ValueType::array:
      fail_type(file, value, kWanted);
    default:
      if (value.type != ValueType::array) fail_type(file, value, kWanted);
  }
  std::vector<std::int64_t> integers;
  integers.reserve(value.count);
  for (std::uint64_t i = 0; i < value.count; ++i) {
    const std::optional<Number> number = number_at(value, i);
    if (const bool* flag = std::get_if<bool>(&*number)) {
      integers.push_back(*flag ? 1 : 0);
      continue;
    }
    const std::optional<std::int64_t> fitting = fit_int(*number);
    if (!fitting) fail_range(file, value, "an array of signed 64-bit integers");
    integers.push_back(*fitting);
  }
  return integers;
}

std::vector<float> to_floats(std::string_view file, const Value& value) {
  const bool is_float =
      value.element_type == ValueType::f32 || value.element_type == ValueType::f64;
  if (value.type != ValueType::array || !is_float) fail_type(file, value, "an array of floats");
  std::vector<float> floats;
  floats.reserve(value.count);
  for (std::uint64_t i = 0; i < value.count; ++i) {
    floats.push_back(static_cast<float>(std::get<double>(*number_at(value, i))));
  }
  return floats;
}

}  // namespace edgerunner::gguf
