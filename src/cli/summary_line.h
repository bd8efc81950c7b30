#pragma once

#include <string>

#include "edgerunner/generation.h"

namespace edgerunner::cli {

// What a generation took, as one line with its end.
std::string summary_line(const Summary& summary);

}  // namespace edgerunner::cli
