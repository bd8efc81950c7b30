#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

namespace edgerunner {

// Parses JSON that others wrote, as nlohmann::json or ordered_json. Throws a std::exception whose
// what() says what is wrong: also where values stand in more than 128 others, for what copies,
// compares or writes them recurses.
template <typename Json>
Json parse_json(std::string_view text) {
  const auto check_depth = [](int depth, typename Json::parse_event_t, Json&) {
    constexpr int kMostLevels = 128;
    if (depth > kMostLevels) throw std::length_error("it is nested too deeply");
    return true;
  };
  return Json::parse(text, check_depth);
}

}  // namespace edgerunner
