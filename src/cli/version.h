#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace edgerunner::cli {

inline constexpr std::string_view kVersion = EDGERUNNER_VERSION;

// What --version prints: the build, and what it can run on here. Throws Error(invalid_argument)
// where EDGERUNNER_ISA forces a set that can't be.
std::string version_text();
nlohmann::ordered_json version_json();

}  // namespace edgerunner::cli
