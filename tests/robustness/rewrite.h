#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "gguf/file.h"
#include "gguf/metadata_value.h"

namespace edgerunner::test {

// The bytes of a file like `file`, in which `key` has another value, or is absent where `value` is
// nullptr.
std::vector<std::byte> with_value(const gguf::File& file, std::string_view key,
                                  const gguf::MetadataValue* value);

}  // namespace edgerunner::test
