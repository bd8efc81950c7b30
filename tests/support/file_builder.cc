#include "support/file_builder.h"

namespace edgerunner::test {

FileBuilder& FileBuilder::append(std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes) bytes_.push_back(byte);
  return *this;
}

FileBuilder& FileBuilder::pad(std::size_t alignment) {
  while (bytes_.size() % alignment != 0) bytes_.push_back(std::byte{0});
  return *this;
}

FileBuilder& FileBuilder::data(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) bytes_.push_back(static_cast<std::byte>(i));
  return *this;
}

}  // namespace edgerunner::test
