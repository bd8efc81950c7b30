#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace edgerunner::cli {

// Writes to standard output, unbuffered. Throws Error(io) where it can't be written (a full disk, a
// reader that has gone); SIGPIPE is ignored for that.
void write_output(std::string_view text);

// One JSON document and a newline. Bytes that are not UTF-8 become U+FFFD.
void write_json(const nlohmann::ordered_json& document);

// A line on standard error that the next one overwrites; nothing where that is not a terminal.
void show_progress(std::string_view line);
void clear_progress();

// Shows how far a model is loaded, and clears the line at the end.
std::function<void(double fraction)> loading_progress();

}  // namespace edgerunner::cli
