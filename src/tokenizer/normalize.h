#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace edgerunner {

// Whether `text`, valid UTF-8, is in Unicode normalisation form C beyond doubt: a quick check that
// may say no where it is.
bool is_surely_nfc(std::string_view text);

// `text`, valid UTF-8, in Unicode normalisation form C. O(n log n) for any text.
std::string to_nfc(std::string_view text);

// Code points in Unicode normalisation form D. O(n log n) for any text.
std::vector<std::int32_t> to_nfd(std::span<const std::int32_t> code_points);

}  // namespace edgerunner
