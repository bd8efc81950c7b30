#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edgerunner/tokenizer.h"
#include "edgerunner/types.h"

namespace edgerunner {

// How a model writes calls of tools.
enum class ToolCallFormat : std::uint8_t {
  none,     // not at all: everything is content
  hermes,   // <tool_call>{"name": ..., "arguments": {...}}</tool_call>, repeated (Hermes, Qwen)
  llama3,   // the whole answer is {"name": ..., "parameters": {...}}, maybe after <|python_tag|>
  mistral,  // [TOOL_CALLS][{"name": ..., "arguments": {...}}, ...], or [TOOL_CALLS]name{...}
};

// What to look for in a model's output.
struct OutputFormat {
  ToolCallFormat tool_calls = ToolCallFormat::none;
  bool reasoning = false;            // <think>...</think> stands before the answer
  bool starts_in_reasoning = false;  // the prompt itself ended with <think>
  bool args_mark = false;            // Mistral: [TOOL_CALLS]name[ARGS]{...}, not a list of objects
};

// The format that goes with a template, judged by the marks that its source holds, and with the end
// of the prompt that it rendered. Without tools (`with_tools` false), calls are not looked for.
OutputFormat detect_output_format(std::string_view template_source,
                                  std::string_view rendered_prompt, bool with_tools);

// Control tokens whose text the parser needs to see ([TOOL_CALLS], <|python_tag|>, <think>, ...),
// as far as the vocabulary has them: for GenerateOptions::visible_tokens.
std::vector<TokenId> marker_tokens(const Tokenizer& tokenizer, const OutputFormat& format);

// A piece of a call. The name comes whole with the first piece of its call; the arguments are a
// JSON text in pieces.
struct ToolCallDelta {
  std::size_t index = 0;  // of the call, from 0
  std::string name;       // empty in all but the first
  std::string arguments;
  bool operator==(const ToolCallDelta&) const = default;
};

// What a piece of output adds.
struct OutputDelta {
  std::string reasoning;
  std::string content;
  std::vector<ToolCallDelta> tool_calls;
  bool empty() const { return reasoning.empty() && content.empty() && tool_calls.empty(); }
};

// Divides a model's output, as it streams, into reasoning, content and calls of tools. However the
// text is cut into pieces, what comes out is the same in sum. Text that may be the beginning of a
// mark is held back until it is known not to be. What looked like a call and then is none (broken
// JSON, no name) comes out as content. Blank space around marks is dropped.
class OutputParser {
 public:
  explicit OutputParser(const OutputFormat& format);
  ~OutputParser();
  OutputParser(OutputParser&&) noexcept;
  OutputParser& operator=(OutputParser&&) noexcept;

  OutputDelta push(std::string_view piece);
  OutputDelta finish();  // the output has ended: what was held back

  std::size_t tool_calls() const;  // seen so far; above 0, the finish reason is "tool_calls"
  bool in_reasoning() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// How many of the tokens of an output are reasoning, with its marks.
std::size_t reasoning_tokens(const Tokenizer& tokenizer, const OutputFormat& format,
                             std::span<const TokenId> tokens);

}  // namespace edgerunner
