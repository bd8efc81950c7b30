#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gguf/writer.h"

namespace edgerunner::convert {

// Sets a GGUF's keys, those of the architecture under its name.
class MetadataKeys {
 public:
  MetadataKeys(gguf::Writer& writer, std::string_view architecture)
      : writer_(writer), prefix_(std::string(architecture) + ".") {}

  void set_uint(std::string_view key, std::uint32_t value) { set(key, value); }
  void set_float(std::string_view key, double value) { set(key, static_cast<float>(value)); }
  void set_flag(std::string_view key, bool value) { set(key, value); }
  void set_text(std::string_view key, std::string_view value) { set(key, std::string(value)); }

 private:
  void set(std::string_view key, const gguf::MetadataValue& value) {
    writer_.set(prefix_ + std::string(key), value);
  }

  gguf::Writer& writer_;
  std::string prefix_;
};

}  // namespace edgerunner::convert
