#include "chat/jinja/template.h"

#include <limits>

#include "base/utf8.h"
#include "chat/jinja/compare.h"
#include "chat/jinja/evaluator.h"
#include "chat/jinja/parser.h"

namespace edgerunner::jinja {
namespace {

using Json = nlohmann::ordered_json;

Value text(const std::string& bytes) {
  if (is_utf8(bytes)) return Value::string(bytes);
  throw Error(ErrorCode::invalid_argument, "a text for the chat template is not valid UTF-8");
}

Value from_json(Heap& heap, const Json& json, int depth) {
  if (depth > kMostValueNesting) {
    throw Error(ErrorCode::invalid_argument,
                "a variable of the chat template is nested too deeply");
  }
  switch (json.type()) {
    case Json::value_t::boolean:
      return json.get<bool>();
    case Json::value_t::number_integer:
      return Value::integer(json.get<std::int64_t>());
    case Json::value_t::number_unsigned:
      if (json.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max()) {
        throw Error(ErrorCode::invalid_argument,
                    "an integer for the chat template is beyond 64 bits with a sign");
      }
      return Value::integer(json.get<std::int64_t>());
    case Json::value_t::number_float:
      return json.get<double>();
    case Json::value_t::string:
      return text(json.get_ref<const std::string&>());
    case Json::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const Json& item : json) items.push_back(from_json(heap, item, depth + 1));
      return heap.list(items);
    }
    case Json::value_t::object: {
      Dict* const dict = heap.dict(json.size());
      for (const auto& [key, value] : json.items()) {
        heap.append(*dict, text(key), from_json(heap, value, depth + 1));
      }
      return Value::object(Kind::dict, dict);
    }
    default:
      return {};
  }
}

}  // namespace

Template::Template(std::string_view source, const Limits& limits)
    : source_(source), block_(parse(source_)), limits_(limits) {}

std::string Template::render(const Json& variables, const LocalTime& now) const {
  Budget budget(limits_);
  Heap heap(budget);
  const Value context = from_json(heap, variables, 0);
  return Evaluator(source_, budget, now).run(block_, *context.as<Dict>());
}

}  // namespace edgerunner::jinja
