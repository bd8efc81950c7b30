#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "chat/jinja/heap.h"
#include "chat/jinja/value.h"

namespace edgerunner::jinja {

// What filters and methods of strings share.

// `wanted` replaced, at most `count` times where that is not negative; an empty `wanted` stands
// between all characters, as in Python.
Value replace_text(Heap& heap, std::string_view text, std::string_view wanted,
                   std::string_view with, std::int64_t count);

// In the middle, at the left or at the right of `width` characters.
enum class Alignment : std::uint8_t { left, right, center };
Value align_text(Heap& heap, std::string_view text, std::int64_t width, std::string_view fill,
                 Alignment alignment);

// Without the given characters at its ends; without blank space where `chars` is none.
std::string_view strip_text(std::string_view text, const Value& chars, bool left, bool right);

// The pieces between separators, or between blank space where `separator` is none; from the right
// where `from_right`. At most `most` splits where that is not negative.
std::vector<std::string_view> split_text(Budget& budget, std::string_view text,
                                         const Value& separator, std::int64_t most,
                                         bool from_right);

Value list_of(Heap& heap, const std::vector<std::string_view>& pieces);

}  // namespace edgerunner::jinja
