#pragma once

#include <string_view>

namespace edgerunner {

// Marks that models write around the parts of an answer.
inline constexpr std::string_view kThink = "<think>";
inline constexpr std::string_view kEndThink = "</think>";
inline constexpr std::string_view kToolCall = "<tool_call>";
inline constexpr std::string_view kEndToolCall = "</tool_call>";
inline constexpr std::string_view kPythonTag = "<|python_tag|>";
inline constexpr std::string_view kToolCalls = "[TOOL_CALLS]";
inline constexpr std::string_view kArgs = "[ARGS]";

}  // namespace edgerunner
