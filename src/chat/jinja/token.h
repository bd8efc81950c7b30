#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "chat/jinja/source.h"

namespace edgerunner::jinja {

enum class TokenType : std::uint8_t {
  data,            // text between tags, whitespace control applied
  variable_begin,  // {{
  variable_end,    // }}
  block_begin,     // {%
  block_end,       // %}
  name,
  string,  // its value, escapes resolved
  integer,
  floating,
  symbol,  // an operator or a bracket; its text
  end,
};

struct Token {
  TokenType type;
  std::size_t offset;  // in the source
  std::string text;
  std::int64_t integer = 0;
  double floating = 0;
};

// The tokens of a template, the last of them `end`: delimiters, whitespace control, trim_blocks
// and lstrip_blocks, comments and raw blocks as Jinja2 3.1 with transformers' settings. Throws
// Error(invalid_file) with line and column.
std::vector<Token> tokenize(const Source& source);

}  // namespace edgerunner::jinja
