#pragma once

#include <string_view>

namespace edgerunner {

// What Unicode 15, 15.1 and 16 added to a general category ("L", "Lu", ...), as the inside of a
// character class. The reference library's expressions know Unicode 16, the PCRE2 of many systems
// Unicode 14; with a newer one these ranges change nothing.
std::string_view unicode_additions(std::string_view category);

}  // namespace edgerunner
