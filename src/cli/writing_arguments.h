#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "quantize/importance_matrix.h"
#include "quantize/quantize_file.h"
#include "quantize/recipe.h"

namespace CLI {
class App;
}

namespace edgerunner::cli {

// What commands that write a model have in common.
struct WritingArguments {
  std::string out;
  int threads = 0;  // 0: the cores there are
  std::uint64_t max_shard_bytes = 0;
  std::string importance;  // a file; empty: none
  bool json = false;

  // The positional OUT, --imatrix, --threads, --max-shard-size and --json.
  void add_to(CLI::App& command);
  // What --imatrix names.
  std::optional<ImportanceMatrix> load_importance() const;
  // With lines of progress that begin with `command`.
  QuantizeOptions options(const std::string& command) const;
  // Says what was written, as text or JSON.
  void print(const QuantizeReport& report, double seconds) const;
};

// Throws UsageError that lists the types where there is none of that name.
Recipe require_recipe(std::string_view name);

}  // namespace edgerunner::cli
