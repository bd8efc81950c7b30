// Typed access to a file's metadata.
#include "gguf/fail.h"
#include "gguf/file.h"
#include "gguf/typed.h"

namespace edgerunner::gguf {
namespace {

template <typename Convert>
auto convert_if_present(const File& file, std::string_view key, Convert convert)
    -> std::optional<decltype(convert(file.name(), std::declval<const Value&>()))> {
  const Value* value = file.find(key);
  if (value == nullptr) return std::nullopt;
  return convert(file.name(), *value);
}

template <typename T>
T require(const File& file, std::string_view key, std::optional<T> value) {
  if (value) return *value;
  fail(ErrorCode::invalid_file, file.name(),
       "metadata key '{}' is missing; the file was written wrongly, so convert it again", key);
}

}  // namespace

std::optional<std::uint64_t> File::get_uint(std::string_view key) const {
  return convert_if_present(*this, key, to_uint);
}
std::optional<std::int64_t> File::get_int(std::string_view key) const {
  return convert_if_present(*this, key, to_int);
}
std::optional<double> File::get_float(std::string_view key) const {
  return convert_if_present(*this, key, to_float);
}
std::optional<bool> File::get_bool(std::string_view key) const {
  return convert_if_present(*this, key, to_bool);
}
std::optional<std::string_view> File::get_string(std::string_view key) const {
  return convert_if_present(*this, key, to_text);
}
std::optional<std::span<const std::string_view>> File::get_strings(std::string_view key) const {
  return convert_if_present(*this, key, to_texts);
}
std::optional<std::vector<std::int64_t>> File::get_ints(std::string_view key) const {
  return convert_if_present(*this, key, to_ints);
}
std::optional<std::vector<float>> File::get_floats(std::string_view key) const {
  return convert_if_present(*this, key, to_floats);
}

std::uint64_t File::require_uint(std::string_view key) const {
  return require(*this, key, get_uint(key));
}
double File::require_float(std::string_view key) const {
  return require(*this, key, get_float(key));
}
std::string_view File::require_string(std::string_view key) const {
  return require(*this, key, get_string(key));
}

}  // namespace edgerunner::gguf
