#pragma once

#include <string>

namespace edgerunner::hub {

// The path that a MODEL argument means. A path that exists is itself, whatever else the word could
// mean; a name that find_source() knows is its file among the fetched models, and Error(io) says
// how to fetch one that isn't there; so does a path below the folder of models, with or without
// .gguf. Anything else is left as it is, for whoever opens it to complain about.
std::string resolve_model(const std::string& argument);

}  // namespace edgerunner::hub
