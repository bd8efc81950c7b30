#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "quantize/quantize_file.h"
#include "quantize/recipe.h"

namespace edgerunner::cli {

// Throws UsageError that lists the types where there is none of that name.
Recipe require_recipe(std::string_view name);

// A line of progress on standard error, for QuantizeOptions::progress.
std::function<void(std::string_view tensor, std::uint64_t done, std::uint64_t total)>
show_tensor_progress(std::string command);

// What was written, as text or JSON.
void print_report(const std::string& file, const QuantizeReport& report, double seconds, bool json);

}  // namespace edgerunner::cli
