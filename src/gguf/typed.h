#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gguf/value.h"

namespace edgerunner::gguf {

// A value as the type that the caller wants. Each throws Error(invalid_file) that names the file,
// the key, the type wanted and the type found where the value is something else or doesn't fit.
std::uint64_t to_uint(std::string_view file, const Value& value);
std::int64_t to_int(std::string_view file, const Value& value);
double to_float(std::string_view file, const Value& value);
bool to_bool(std::string_view file, const Value& value);
std::string_view to_text(std::string_view file, const Value& value);
std::span<const std::string_view> to_texts(std::string_view file, const Value& value);
std::vector<std::int64_t> to_ints(std::string_view file, const Value& value);
std::vector<float> to_floats(std::string_view file, const Value& value);

}  // namespace edgerunner::gguf
