#pragma once

#include <nlohmann/json.hpp>

#include "chat/output_parser.h"
#include "constraint/grammar.h"

namespace edgerunner {

// What an answer may be, beside reasoning in front of it.
struct AnswerShape {
  // Tools that may be called, in OpenAI's form: an array, or null.
  nlohmann::ordered_json tools;
  bool calls_only = false;        // nothing but calls of tools
  bool several_calls = true;      // in one answer
  nlohmann::ordered_json schema;  // what the answer is where it calls nothing; null: any text
};

// The texts of such an answer, as OutputParser reads them in this format. Arguments are what the
// tool's parameters, a JSON Schema, hold for: of all tools where only calls may come, else of those
// that are `strict`. Throws Error(invalid_argument) naming the tool and the keyword that can't be
// enforced.
Grammar answer_grammar(const OutputFormat& format, const AnswerShape& shape);

}  // namespace edgerunner
