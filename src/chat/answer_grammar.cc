#include "chat/answer_grammar.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "chat/output_marks.h"
#include "constraint/free_text.h"
#include "constraint/json_schema.h"
#include "edgerunner/error.h"

namespace edgerunner {
namespace {

using Json = nlohmann::ordered_json;

constexpr NodeId kEnd = GrammarBuilder::kEnd;
constexpr NodeId kNothing = GrammarBuilder::kNothing;
constexpr std::int64_t kMostBlanks = 4;  // between the parts of an answer

// The schema of a function's arguments, which are an object; one that names none takes none.
Json parameters_of(const Json& function) {
  const auto parameters = function.find("parameters");
  if (parameters == function.end() || parameters->is_null()) {
    return {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
  }
  Json schema = *parameters;
  if (schema.is_object() && !schema.contains("type")) schema["type"] = "object";
  if (!schema.is_object() || schema["type"] != "object") {
    throw Error(ErrorCode::invalid_argument, "JSON schema: type: arguments must be an object");
  }
  return schema;
}

class Builder {
 public:
  Builder(const OutputFormat& format, const AnswerShape& shape) : format_(format), shape_(shape) {}

  Grammar run() {
    std::vector<NodeId> ways;
    if (!shape_.tools.is_null()) {
      ways.push_back(calls_only() ? calls(kEnd) : text_with_calls());
    }
    if (!shape_.schema.is_null()) {
      ways.push_back(add_json_schema(builder_, json_, shape_.schema, kEnd));
    }
    return builder_.finish(after_reasoning(builder_.either(ways)));
  }

 private:
  // Beside a schema, no other text may stand.
  bool calls_only() const { return shape_.calls_only || !shape_.schema.is_null(); }

  NodeId after_reasoning(NodeId answer) {
    if (!format_.reasoning) return answer;
    const NodeId thought = text_up_to(builder_, kEndThink, blanks(answer), kNothing);
    if (format_.starts_in_reasoning) return thought;
    return builder_.either({answer, builder_.literal(kThink, thought)});
  }

  NodeId blanks(NodeId next) {
    const ByteSet blank = one_byte(' ') | one_byte('\n');
    const auto part = [&](NodeId after) { return builder_.bytes(blank, after); };
    return builder_.repeat(part, 0, kMostBlanks, next);
  }

  // One call or more.
  NodeId calls(NodeId next) {
    switch (format_.tool_calls) {
      case ToolCallFormat::none:
        return kNothing;
      case ToolCallFormat::hermes:
        return sequence(kToolCall, next);
      case ToolCallFormat::llama3:
        return separated("; ", next);
      case ToolCallFormat::mistral:
        return builder_.literal(kToolCalls, behind_mark(next));
    }
    return kNothing;
  }

  // Text, and calls where their mark comes.
  NodeId text_with_calls() {
    switch (format_.tool_calls) {
      case ToolCallFormat::none:
        return any_text(builder_, kEnd);
      case ToolCallFormat::hermes: {
        const NodeId text = builder_.reserve();
        const NodeId after = shape_.several_calls ? text : blanks(kEnd);
        builder_.define(text, text_up_to(builder_, kToolCall, behind_mark(after), kEnd));
        return text;
      }
      case ToolCallFormat::llama3: {
        // What begins like a call is one.
        const ByteSet blank = one_byte(' ') | one_byte('\n') | one_byte('\t') | one_byte('\r');
        const ByteSet other = ~(blank | one_byte('{') | one_byte('<'));
        const NodeId text = builder_.bytes(other, any_text(builder_, kEnd));
        return builder_.either({kEnd, blanks(builder_.either({calls(kEnd), text}))});
      }
      case ToolCallFormat::mistral:
        return text_up_to(builder_, kToolCalls, behind_mark(kEnd), kEnd);
    }
    return kNothing;
  }

  // Calls that each begin with the mark.
  NodeId sequence(std::string_view mark, NodeId next) {
    if (!shape_.several_calls) return builder_.literal(mark, behind_mark(next));
    const NodeId again = builder_.reserve();
    const NodeId first = builder_.literal(mark, behind_mark(again));
    builder_.define(again, builder_.either({next, blanks(first)}));
    return first;
  }

  // What comes behind the mark that announces a call.
  NodeId behind_mark(NodeId next) {
    if (format_.tool_calls == ToolCallFormat::hermes) {
      const NodeId close = json_.space(builder_.literal(kEndToolCall, next));
      return json_.space(object("arguments", close));
    }
    if (!format_.args_mark) {
      return json_.space(builder_.literal("[", separated(", ", builder_.literal("]", next))));
    }
    if (!shape_.several_calls) return named_call(next);
    const NodeId again = builder_.reserve();
    const NodeId first = named_call(again);
    builder_.define(again, builder_.either({next, builder_.literal(kToolCalls, first)}));
    return first;
  }

  NodeId separated(std::string_view separator, NodeId next) {
    const char* const key =
        format_.tool_calls == ToolCallFormat::llama3 ? "parameters" : "arguments";
    if (!shape_.several_calls) return object(key, next);
    const NodeId again = builder_.reserve();
    const NodeId first = object(key, again);
    builder_.define(again, builder_.either({next, builder_.literal(separator, first)}));
    return first;
  }

  // {"name": ..., "arguments": {...}}
  NodeId object(const std::string& arguments_key, NodeId next) {
    const NodeId close = json_.space(builder_.literal("}", next));
    std::vector<NodeId> ways;
    for (std::size_t i = 0; i < shape_.tools.size(); ++i) {
      NodeId way = json_.space(arguments(i, close));
      way = json_.space(builder_.literal(fmt::format("\"{}\":", arguments_key), way));
      way = builder_.literal(name_of(i).dump() + ",", way);
      ways.push_back(json_.space(builder_.literal("\"name\":", json_.space(way))));
    }
    return builder_.literal("{", builder_.either(ways));
  }

  // name[ARGS]{...}
  NodeId named_call(NodeId next) {
    std::vector<NodeId> ways;
    for (std::size_t i = 0; i < shape_.tools.size(); ++i) {
      const NodeId behind_name = builder_.literal(kArgs, arguments(i, next));
      ways.push_back(builder_.literal(name_of(i).get_ref<const std::string&>(), behind_name));
    }
    return builder_.either(ways);
  }

  const Json& function(std::size_t tool) const { return shape_.tools[tool]["function"]; }
  const Json& name_of(std::size_t tool) const { return function(tool)["name"]; }

  NodeId arguments(std::size_t tool, NodeId next) {
    const auto strict = function(tool).find("strict");
    const bool bound = shape_.calls_only || (strict != function(tool).end() && *strict == true);
    if (!bound) return json_.object(next);
    try {
      return add_json_schema(builder_, json_, parameters_of(function(tool)), next);
    } catch (const Error& error) {
      throw Error(error.code(),
                  fmt::format("parameters of {}: {}", name_of(tool).dump(), error.what()));
    }
  }

  const OutputFormat& format_;
  const AnswerShape& shape_;
  GrammarBuilder builder_;
  JsonGrammar json_{builder_};
};

}  // namespace

Grammar answer_grammar(const OutputFormat& format, const AnswerShape& shape) {
  return Builder(format, shape).run();
}

}  // namespace edgerunner
