#pragma once

#include <string>
#include <string_view>

namespace edgerunner::jinja {

// & < > " ' as entities, as MarkupSafe writes them.
std::string escape_html(std::string_view text);
// Without tags and comments, entities resolved, blank space as single spaces.
std::string strip_tags(std::string_view text);

}  // namespace edgerunner::jinja
