#pragma once

#include <string_view>

namespace edgerunner {

// Whether `text` is well-formed UTF-8 (Unicode 15, table 3-7: no surrogates, no overlong forms).
bool is_utf8(std::string_view text);

// Whether `text` can be printed on one line as it is: well-formed UTF-8 without ASCII control
// characters.
bool is_printable(std::string_view text);

}  // namespace edgerunner
