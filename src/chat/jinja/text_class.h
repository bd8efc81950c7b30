#pragma once

#include <string_view>

namespace edgerunner::jinja {

// What a text consists of, as Python's str.is... methods tell it.
bool is_lower_text(std::string_view text);
bool is_upper_text(std::string_view text);
bool is_title_text(std::string_view text);
bool is_identifier(std::string_view text);

// Whether all characters are of a class; false for an empty text.
bool all_of_class(std::string_view text, bool (*is_member)(char32_t));

}  // namespace edgerunner::jinja
