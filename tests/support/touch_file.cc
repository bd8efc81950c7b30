#include "support/touch_file.h"

#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "edgerunner/error.h"

namespace edgerunner::test {
namespace {

void promise(bool kept, const char* what) {
  if (kept) return;
  std::fprintf(stderr, "gguf::File broke a promise: %s\n", what);
  std::abort();
}

std::uint64_t sum(std::span<const std::byte> bytes) {
  return std::accumulate(
      bytes.begin(), bytes.end(), std::uint64_t{0},
      [](std::uint64_t total, std::byte byte) { return total + static_cast<std::uint8_t>(byte); });
}

std::uint64_t sum(std::string_view text) { return sum(std::as_bytes(std::span(text))); }

// 1 where the action succeeds, 0 where it throws the error that it may throw.
template <typename Action>
std::uint64_t attempt(Action action) {
  try {
    action();
    return 1;
  } catch (const Error& error) {
    promise(error.code() == ErrorCode::invalid_file, "typed access fails with invalid_file");
    return 0;
  }
}

std::uint64_t touch_accessors(const gguf::File& file, std::string_view key) {
  std::uint64_t succeeded = 0;
  succeeded += attempt([&] { (void)file.get_uint(key); });
  succeeded += attempt([&] { (void)file.get_int(key); });
  succeeded += attempt([&] { (void)file.get_float(key); });
  succeeded += attempt([&] { (void)file.get_bool(key); });
  succeeded += attempt([&] { (void)file.get_string(key); });
  succeeded += attempt([&] { (void)file.get_strings(key); });
  succeeded += attempt([&] { (void)file.get_ints(key); });
  succeeded += attempt([&] { (void)file.get_floats(key); });
  succeeded += attempt([&] { (void)file.require_uint(key); });
  succeeded += attempt([&] { (void)file.require_float(key); });
  succeeded += attempt([&] { (void)file.require_string(key); });
  return succeeded;
}

std::uint64_t touch_value(const gguf::File& file, const gguf::Value& value) {
  promise(file.find(value.key) == &value, "find() finds each key");
  promise(!value.key.empty(), "keys are not empty");
  promise(value.element_type != gguf::ValueType::array, "no array of arrays");
  if (value.type == gguf::ValueType::array && value.element_type == gguf::ValueType::string) {
    promise(value.texts.size() == value.count, "an array has its count of strings");
  } else {
    promise(value.bytes.size() == value.count * gguf::value_bytes(value.element_type),
            "numbers fill their bytes");
  }
  std::uint64_t total = sum(value.key) + sum(value.bytes) + sum(value.text);
  for (const std::string_view text : value.texts) total += sum(text);
  for (std::uint64_t i = 0; i < value.count; ++i) total += gguf::number_at(value, i).has_value();
  promise(!gguf::number_at(value, value.count), "nothing past the end");
  return total + gguf::name(value.type).size() + gguf::type_name(value).size() +
         touch_accessors(file, value.key);
}

std::uint64_t touch_tensor(const gguf::File& file, const gguf::Tensor& tensor) {
  const ElementTypeTraits& type = traits(tensor.type);
  promise(file.find_tensor(tensor.name) == &tensor, "find_tensor() finds each tensor");
  promise(tensor.rank >= 1 && tensor.rank <= 4, "rank is 1 to 4");
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    promise(tensor.shape[i] >= 1, "dimensions are at least 1");
    promise(i < tensor.rank || tensor.shape[i] == 1, "the shape is padded with 1");
  }
  promise(tensor.shape[0] % type.block_length == 0, "rows are whole blocks");
  promise(tensor.data.size() == tensor.elements() / type.block_length * type.block_bytes,
          "the data has the size of the shape");
  return sum(tensor.name) + sum(tensor.data);
}

}  // namespace

std::uint64_t touch(const gguf::File& file) {
  promise(file.version() == 2 || file.version() == 3, "version is 2 or 3");
  promise(file.alignment() >= 8, "alignment is at least 8");
  std::uint64_t total = file.name().size() + file.shard_count();
  std::uint64_t tensor_bytes = 0;
  for (const gguf::Value& value : file.metadata()) total += touch_value(file, value);
  for (const gguf::Tensor& tensor : file.tensors()) {
    total += touch_tensor(file, tensor);
    tensor_bytes += tensor.data.size();
  }
  promise(tensor_bytes <= file.bytes(), "tensors share no bytes");
  total += touch_accessors(file, "no.such.key");
  promise(file.find("no.such.key") == nullptr || file.find_tensor("") == nullptr,
          "absent names are not found");
  file.will_need();
  file.dont_need();
  return total;
}

}  // namespace edgerunner::test
