#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "chat/jinja/budget.h"
#include "chat/jinja/source.h"
#include "chat/jinja/syntax_tree.h"
#include "chat/local_time.h"

namespace edgerunner::jinja {

// A template in Jinja2's language, as transformers sets it up: trim_blocks, lstrip_blocks, loop
// controls, no escaping, immutable sandbox; with raise_exception, strftime_now, and tojson as
// json.dumps with ensure_ascii off. Immutable after construction.
class Template {
 public:
  // Throws Error(invalid_file) for what Jinja refuses too, Error(unsupported) for what only we do,
  // with line and column.
  explicit Template(std::string_view source, const Limits& limits = {});

  // The text with the members of `variables`, an object, as variables. Throws
  // Error(invalid_argument) with what the template raised, or with line and column of what failed;
  // Error(unsupported) for a construct that Jinja has and we do not; Error(out_of_memory) beyond
  // the limits.
  std::string render(const nlohmann::ordered_json& variables, const LocalTime& now) const;

 private:
  Source source_;
  Block block_;
  Limits limits_;
};

}  // namespace edgerunner::jinja
