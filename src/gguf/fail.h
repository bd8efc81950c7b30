#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "edgerunner/error.h"

namespace edgerunner::gguf {

// Throws Error(code) whose sentence begins with the file's name.
template <typename... Arguments>
[[noreturn]] void fail(ErrorCode code, std::string_view file, fmt::format_string<Arguments...> text,
                       Arguments&&... arguments) {
  throw Error(code,
              fmt::format("{}: ", file) + fmt::format(text, std::forward<Arguments>(arguments)...));
}

}  // namespace edgerunner::gguf
