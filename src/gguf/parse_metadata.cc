#include <algorithm>

#include "base/checked_math.h"
#include "gguf/fail.h"
#include "gguf/parse.h"

namespace edgerunner::gguf {
namespace {

ValueType read_type(ByteReader& reader, std::string_view key) {
  const auto number = reader.number<std::uint32_t>({"the type of key", key});
  if (number > static_cast<std::uint32_t>(ValueType::f64)) {
    fail(ErrorCode::unsupported, reader.file(),
         "metadata key '{}' has the unknown value type {}; the file is damaged or newer than this "
         "program",
         key, number);
  }
  return static_cast<ValueType>(number);
}

void check_booleans(const ByteReader& reader, const Value& value) {
  const auto is_boolean = [](std::byte byte) { return byte <= std::byte{1}; };
  if (std::all_of(value.bytes.begin(), value.bytes.end(), is_boolean)) return;
  fail(ErrorCode::invalid_file, reader.file(),
       "metadata key '{}' holds a boolean that is neither 0 nor 1; the file is damaged, so fetch "
       "it again",
       value.key);
}

// Walks the strings once before it allocates, so that the allocation is of strings that are there.
std::vector<std::string_view> read_strings(ByteReader& reader, const Value& value) {
  const Part part{"a string of key", value.key};
  ByteReader ahead = reader;
  for (std::uint64_t i = 0; i < value.count; ++i) ahead.string(part);
  std::vector<std::string_view> texts(value.count);
  for (std::string_view& text : texts) text = reader.string(part);
  return texts;
}

void read_array(ByteReader& reader, Value& value) {
  value.element_type = read_type(reader, value.key);
  if (value.element_type == ValueType::array) {
    fail(ErrorCode::unsupported, reader.file(),
         "metadata key '{}' is an array of arrays, which no model needs and EdgeRunner doesn't "
         "read; convert the model without it",
         value.key);
  }
  value.count = reader.number<std::uint64_t>({"the length of array", value.key});
  if (value.element_type == ValueType::string) {
    value.texts = read_strings(reader, value);
    return;
  }
  const std::optional<std::uint64_t> bytes =
      checked_multiply(value.count, value_bytes(value.element_type));
  if (!bytes) {
    fail(ErrorCode::invalid_file, reader.file(),
         "metadata key '{}' claims {} array elements, more than any file holds; the file is "
         "damaged, so fetch it again",
         value.key, value.count);
  }
  value.bytes = reader.take(*bytes, {"the array of key", value.key});
  if (value.element_type == ValueType::boolean) check_booleans(reader, value);
}

Value read_entry(ByteReader& reader) {
  Value value{};
  value.key = reader.string({"a metadata key"});
  check_name(reader.file(), "metadata key", value.key, kMaxKeyBytes);
  value.type = read_type(reader, value.key);
  value.element_type = value.type;
  value.count = 1;
  if (value.type == ValueType::array) {
    read_array(reader, value);
  } else if (value.type == ValueType::string) {
    value.text = reader.string({"the string of key", value.key});
  } else {
    value.bytes = reader.take(value_bytes(value.type), {"the value of key", value.key});
    if (value.type == ValueType::boolean) check_booleans(reader, value);
  }
  return value;
}

}  // namespace

std::vector<Value> parse_metadata(ByteReader& reader, std::uint64_t count) {
  std::vector<Value> metadata;
  for (std::uint64_t i = 0; i < count; ++i) metadata.push_back(read_entry(reader));
  return metadata;
}

}  // namespace edgerunner::gguf
