#include "rewrite.h"

#include <cstdint>

namespace edgerunner::test {
namespace {

void pad(std::vector<std::byte>& bytes, std::uint64_t alignment) {
  while (bytes.size() % alignment != 0) bytes.push_back(std::byte{0});
}

}  // namespace

std::vector<std::byte> with_value(const gguf::File& file, std::string_view key,
                                  const gguf::MetadataValue* value) {
  std::vector<std::byte> bytes;
  for (const char letter : std::string_view("GGUF")) gguf::append_number(bytes, letter);
  gguf::append_number(bytes, file.version());
  gguf::append_number(bytes, std::uint64_t{file.tensors().size()});
  gguf::append_number(bytes, std::uint64_t{file.metadata().size() - (value == nullptr ? 1 : 0)});
  for (const gguf::Value& entry : file.metadata()) {
    if (entry.key != key) {
      gguf::append_entry(bytes, entry);
    } else if (value != nullptr) {
      gguf::append_entry(bytes, key, *value);
    }
  }
  std::vector<std::byte> data;
  for (const gguf::Tensor& tensor : file.tensors()) {
    gguf::append_string(bytes, tensor.name);
    gguf::append_number(bytes, tensor.rank);
    for (std::uint32_t i = 0; i < tensor.rank; ++i) gguf::append_number(bytes, tensor.shape[i]);
    gguf::append_number(bytes, static_cast<std::uint32_t>(tensor.type));
    gguf::append_number(bytes, std::uint64_t{data.size()});
    data.insert(data.end(), tensor.data.begin(), tensor.data.end());
    pad(data, file.alignment());
  }
  pad(bytes, file.alignment());
  bytes.insert(bytes.end(), data.begin(), data.end());
  return bytes;
}

}  // namespace edgerunner::test
