#pragma once

#include <filesystem>
#include <optional>

namespace edgerunner::hub {

// Where fetched models are kept: $EDGERUNNER_CACHE/models, or else edgerunner/models in
// $XDG_CACHE_HOME or ~/.cache; nullopt where none of the three variables is set.
std::optional<std::filesystem::path> find_models_folder();

// The same; throws Error(io) that says which variable to set.
std::filesystem::path models_folder();

}  // namespace edgerunner::hub
