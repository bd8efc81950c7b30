#include "constraint/json_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "constraint/json_grammar.h"
#include "constraint/number_range.h"
#include "constraint/object_keys.h"
#include "constraint/pattern.h"
#include "constraint/schema_merge.h"
#include "edgerunner/error.h"

namespace edgerunner {
namespace {

constexpr int kMostNesting = 64;
constexpr std::int64_t kMostCount = 100'000;
constexpr NodeId kEnd = GrammarBuilder::kEnd;
constexpr NodeId kNothing = GrammarBuilder::kNothing;

// Keywords that bind values of one type.
constexpr std::array<std::string_view, 4> kStringKeywords = {"minLength", "maxLength", "pattern",
                                                             "format"};
constexpr std::array<std::string_view, 5> kNumberKeywords = {
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"};
constexpr std::array<std::string_view, 5> kObjectKeywords = {
    "properties", "required", "additionalProperties", "minProperties", "maxProperties"};
constexpr std::array<std::string_view, 5> kArrayKeywords = {"items", "prefixItems", "minItems",
                                                            "maxItems", "uniqueItems"};
constexpr std::array<std::string_view, 6> kGeneralKeywords = {"type",  "enum",  "const",
                                                              "anyOf", "oneOf", "$ref"};

template <std::size_t n>
bool is_one_of(const std::array<std::string_view, n>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

template <std::size_t n>
bool has_any(const Schema& schema, const std::array<std::string_view, n>& names) {
  return std::any_of(names.begin(), names.end(), [&schema](std::string_view name) {
    return schema.contains(std::string(name));
  });
}

[[noreturn]] void fail(std::string_view keyword, std::string_view what) {
  throw Error(ErrorCode::invalid_argument, fmt::format("JSON schema: {}: {}", keyword, what));
}

std::string type_of(const Schema& value) {
  if (value.is_number_integer()) return "integer";
  if (value.is_number_float()) {
    const double number = value.get<double>();
    return number == static_cast<double>(static_cast<std::int64_t>(number)) ? "integer" : "number";
  }
  return value.is_object()    ? "object"
         : value.is_array()   ? "array"
         : value.is_string()  ? "string"
         : value.is_boolean() ? "boolean"
                              : "null";
}

class Compiler {
 public:
  Compiler(GrammarBuilder& builder, JsonGrammar& json, const Schema& root)
      : root_(root), document_(root), builder_(builder), json_(json) {}

  NodeId run(NodeId next) {
    const NodeId start = schema(root_, next, 0);
    if (start == kNothing) fail("schema", "no JSON can satisfy it");
    return start;
  }

 private:
  NodeId schema(const Schema& given, NodeId next, int depth) {
    if (depth > kMostNesting) fail("schema", "it nests too deeply");
    if (given.is_boolean()) return given == true ? json_.value(next) : kNothing;
    if (!given.is_object()) fail("schema", "it must be an object, true or false");
    if (const std::optional<std::string> reference = plain_reference(given)) {
      return builder_.call(rule(*reference, depth), next);
    }
    const Schema whole = document_.resolved(given);
    if (whole.is_boolean()) return schema(whole, next, depth + 1);
    check_keywords(whole);
    for (const char* keyword : {"anyOf", "oneOf"}) {
      if (whole.contains(keyword)) return alternatives(whole, keyword, next, depth);
    }
    if (whole.contains("const") || whole.contains("enum")) return values(whole, next);
    std::vector<NodeId> ways;
    for (const std::string& type : types(whole)) ways.push_back(typed(whole, type, next, depth));
    return builder_.either(ways);
  }

  // The target of a schema that is a $ref and says nothing else.
  static std::optional<std::string> plain_reference(const Schema& given) {
    if (!given.contains("$ref") || !given["$ref"].is_string()) return std::nullopt;
    for (const auto& [keyword, value] : given.items()) {
      if (keyword != "$ref" && !is_annotation(keyword)) return std::nullopt;
    }
    return given["$ref"].get<std::string>();
  }

  // What is referred to is a rule of its own, so that it may refer to itself.
  NodeId rule(const std::string& reference, int depth) {
    if (const auto known = rules_.find(reference); known != rules_.end()) return known->second;
    const NodeId reserved = builder_.reserve();
    rules_.emplace(reference, reserved);
    builder_.define(reserved, schema(document_.at(reference), kEnd, depth + 1));
    return reserved;
  }

  static void check_keywords(const Schema& whole) {
    for (const auto& [keyword, value] : whole.items()) {
      if (is_annotation(keyword) || is_one_of(kGeneralKeywords, keyword) ||
          is_one_of(kStringKeywords, keyword) || is_one_of(kNumberKeywords, keyword) ||
          is_one_of(kObjectKeywords, keyword) || is_one_of(kArrayKeywords, keyword)) {
        continue;
      }
      fail(keyword, "this keyword can't be enforced");
    }
  }

  NodeId alternatives(const Schema& whole, const std::string& keyword, NodeId next, int depth) {
    const Schema& parts = whole[keyword];
    if (!parts.is_array() || parts.empty()) fail(keyword, "it must be a list of schemas");
    Schema rest = whole;
    rest.erase(keyword);
    const bool alone = std::all_of(rest.items().begin(), rest.items().end(),
                                   [](const auto& item) { return is_annotation(item.key()); });
    std::vector<NodeId> ways;
    std::vector<Schema> whole_parts;
    for (const Schema& part : parts) {
      // A part alone stays as it is, so that what it refers to is a rule.
      whole_parts.push_back(alone ? part : document_.merged(rest, part));
      ways.push_back(schema(whole_parts.back(), next, depth + 1));
    }
    for (std::size_t i = 0; keyword == "oneOf" && i < whole_parts.size(); ++i) {
      for (std::size_t j = i + 1; j < whole_parts.size(); ++j) {
        if (!document_.exclude_each_other(whole_parts[i], whole_parts[j])) {
          fail("oneOf", "its parts must exclude one another by type, const or enum; use anyOf");
        }
      }
    }
    return builder_.either(ways);
  }

  NodeId values(const Schema& whole, NodeId next) {
    for (const auto& [keyword, value] : whole.items()) {
      if (keyword == "type" || keyword == "enum" || keyword == "const" || is_annotation(keyword)) {
        continue;
      }
      fail(keyword, "it can't be enforced together with enum or const");
    }
    std::vector<Schema> allowed;
    if (whole.contains("enum")) {
      if (!whole["enum"].is_array()) fail("enum", "it must be an array");
      allowed.assign(whole["enum"].begin(), whole["enum"].end());
    } else {
      allowed.push_back(whole["const"]);
    }
    std::vector<NodeId> ways;
    for (const Schema& value : allowed) {
      if (whole.contains("const") && value != whole["const"]) continue;
      if (whole.contains("type") && !has_type(whole, type_of(value))) continue;
      ways.push_back(builder_.literal(value.dump(), next));
    }
    return builder_.either(ways);
  }

  static bool has_type(const Schema& whole, const std::string& type) {
    const std::vector<std::string> allowed = types(whole);
    const auto has = [&](const std::string& name) {
      return std::find(allowed.begin(), allowed.end(), name) != allowed.end();
    };
    return has(type) || (type == "integer" && has("number"));
  }

  // The types that are allowed. Where none is said, the keywords tell which one is meant: that
  // leaves out values of others, for which those keywords would not hold.
  static std::vector<std::string> types(const Schema& whole) {
    std::vector<std::string> result;
    if (whole.contains("type")) {
      const Schema& type = whole["type"];
      const Schema list = type.is_array() ? type : Schema::array({type});
      for (const Schema& name : list) {
        constexpr std::array<std::string_view, 7> kTypes = {
            "string", "number", "integer", "object", "array", "boolean", "null"};
        if (!name.is_string() || !is_one_of(kTypes, name.get<std::string>())) {
          fail("type", fmt::format("{} is no type", name.dump()));
        }
        result.push_back(name.get<std::string>());
      }
      return result;
    }
    if (has_any(whole, kObjectKeywords)) return {"object"};
    if (has_any(whole, kArrayKeywords)) return {"array"};
    if (has_any(whole, kStringKeywords)) return {"string"};
    if (has_any(whole, kNumberKeywords)) return {"number"};
    return {"object", "array", "string", "number", "boolean", "null"};
  }

  NodeId typed(const Schema& whole, const std::string& type, NodeId next, int depth) {
    if (type == "string") return string(whole, next);
    if (type == "number" || type == "integer") return number(whole, type == "integer", next);
    if (type == "object") return object(whole, next, depth);
    if (type == "array") return array(whole, next, depth);
    return type == "boolean" ? json_.boolean(next) : json_.null(next);
  }

  static std::int64_t count(const Schema& whole, const char* keyword, std::int64_t fallback) {
    if (!whole.contains(keyword)) return fallback;
    const Schema& value = whole[keyword];
    if (!value.is_number() || value.get<double>() < 0 ||
        value.get<double>() != static_cast<double>(value.get<std::int64_t>())) {
      fail(keyword, "it must be a number of items or characters");
    }
    if (value.get<double>() > kMostCount) {
      fail(keyword, fmt::format("it can be enforced up to {}", kMostCount));
    }
    return value.get<std::int64_t>();
  }

  NodeId string(const Schema& whole, NodeId next) {
    const bool bounded = whole.contains("minLength") || whole.contains("maxLength");
    const bool shaped = whole.contains("pattern") || whole.contains("format");
    if (bounded && shaped) {
      fail(whole.contains("minLength") ? "minLength" : "maxLength",
           "it can't be enforced together with pattern or format");
    }
    if (whole.contains("pattern") && whole.contains("format")) {
      fail("format", "it can't be enforced together with pattern");
    }
    const NodeId close = builder_.literal("\"", next);
    if (shaped) {
      const char* keyword = whole.contains("pattern") ? "pattern" : "format";
      if (!whole[keyword].is_string()) fail(keyword, "it must be a string");
      std::string pattern = whole[keyword].get<std::string>();
      if (!whole.contains("pattern")) pattern = pattern_of_format(pattern);
      return builder_.literal("\"", string_matching(builder_, json_, pattern, close));
    }
    if (!bounded) return json_.string(next);
    const auto character = [this](NodeId after) { return json_.character(after); };
    const std::int64_t least = count(whole, "minLength", 0);
    const std::int64_t most = count(whole, "maxLength", -1);
    if (most >= 0 && most < least) return kNothing;
    return builder_.literal("\"", builder_.repeat(character, least, most, close));
  }

  static std::string pattern_of_format(const std::string& format) {
    // Days up to 28 only, so that every month has them.
    const std::string date = "[0-9]{3}[1-9]-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])";
    const std::string time =
        "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-"
        "9])";
    if (format == "date") return "^" + date + "$";
    if (format == "time") return "^" + time + "$";
    if (format == "date-time") return "^" + date + "T" + time + "$";
    if (format == "uuid") {
      return "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$";
    }
    fail("format", fmt::format("\"{}\" can't be enforced", format));
  }

  NodeId number(const Schema& whole, bool integer, NodeId next) {
    if (whole.contains("multipleOf") && !(integer && whole["multipleOf"] == 1)) {
      fail("multipleOf", "this keyword can't be enforced");
    }
    NumberBounds bounds;
    const auto read = [&whole](const char* keyword) -> std::optional<double> {
      if (!whole.contains(keyword)) return std::nullopt;
      if (!whole[keyword].is_number()) fail(keyword, "it must be a number");
      return whole[keyword].get<double>();
    };
    bounds.least = read("minimum");
    bounds.most = read("maximum");
    if (const auto above = read("exclusiveMinimum");
        above && (!bounds.least || *above >= *bounds.least)) {
      bounds.least = above;
      bounds.least_excluded = true;
    }
    if (const auto below = read("exclusiveMaximum");
        below && (!bounds.most || *below <= *bounds.most)) {
      bounds.most = below;
      bounds.most_excluded = true;
    }
    if (bounds.any()) return number_between(builder_, bounds, integer, next);
    return integer ? json_.integer(next) : json_.number(next);
  }

  NodeId array(const Schema& whole, NodeId next, int depth) {
    if (whole.contains("uniqueItems") && whole["uniqueItems"] != false) {
      fail("uniqueItems", "this keyword can't be enforced");
    }
    const std::int64_t least = count(whole, "minItems", 0);
    std::int64_t most = count(whole, "maxItems", -1);
    if (most >= 0 && most < least) return kNothing;
    const Schema items = whole.contains("items") ? whole["items"] : Schema(true);
    if (items.is_array()) fail("items", "it must be one schema; use prefixItems for several");
    if (whole.contains("prefixItems")) return tuple(whole, items, least, most, next, depth);
    NodeId item = kNothing;  // as a rule of its own, since it is repeated
    if (items != false) {
      const NodeId body = schema(items, kEnd, depth + 1);
      if (body != kNothing) {
        item = builder_.reserve();
        builder_.define(item, body);
      }
    }
    if (item == kNothing) {
      if (least > 0) return kNothing;
      most = 0;
    }
    const auto part = [&](NodeId after) { return builder_.call(item, after); };
    return builder_.literal("[", json_.list(part, least, most, builder_.literal("]", next)));
  }

  // Items of which each has a schema of its own; all of them, and no more.
  NodeId tuple(const Schema& whole, const Schema& items, std::int64_t least, std::int64_t most,
               NodeId next, int depth) {
    const Schema& prefix = whole["prefixItems"];
    if (!prefix.is_array()) fail("prefixItems", "it must be a list of schemas");
    const auto size = static_cast<std::int64_t>(prefix.size());
    if ((least > size && items == false) || (most >= 0 && most < size)) {
      fail("prefixItems", "it can't be enforced with these minItems and maxItems");
    }
    NodeId way = json_.space(builder_.literal("]", next));
    for (std::int64_t i = std::max(size, least); i > 0; --i) {
      const Schema& item = i <= size ? prefix[static_cast<std::size_t>(i - 1)] : items;
      way = schema(item, way, depth + 1);
      way = json_.space(way);
      if (i > 1) way = builder_.literal(",", way);
    }
    return builder_.literal("[", way);
  }

  struct Property {
    std::string name;
    Schema schema;
    bool required = false;
  };

  static std::vector<Property> properties_of(const Schema& whole) {
    std::vector<Property> result;
    if (whole.contains("properties")) {
      if (!whole["properties"].is_object()) fail("properties", "it must be an object");
      for (const auto& [name, value] : whole["properties"].items()) result.push_back({name, value});
    }
    if (!whole.contains("required")) return result;
    if (!whole["required"].is_array()) fail("required", "it must be an array");
    for (const Schema& name : whole["required"]) {
      if (!name.is_string()) fail("required", "it must hold strings");
      const auto key = name.get<std::string>();
      const auto found = std::find_if(result.begin(), result.end(),
                                      [&key](const Property& p) { return p.name == key; });
      if (found != result.end()) {
        found->required = true;
      } else {  // an additional property that must be there
        result.push_back({key, whole.value("additionalProperties", Schema(true)), true});
      }
    }
    return result;
  }

  NodeId object(const Schema& whole, NodeId next, int depth) {
    const std::vector<Property> properties = properties_of(whole);
    const auto required = std::count_if(properties.begin(), properties.end(),
                                        [](const Property& p) { return p.required; });
    // Others come where the schema says so, or where it names none at all.
    const bool says = whole.contains("additionalProperties");
    const Schema others = says ? whole["additionalProperties"] : Schema(properties.empty());
    if (count(whole, "minProperties", 0) > required) {
      fail("minProperties", "it can be enforced up to the number of required properties only");
    }
    const std::int64_t most = count(whole, "maxProperties", -1);
    if (most >= 0 && (others != false || most < static_cast<std::int64_t>(properties.size()))) {
      fail("maxProperties", "it can't be enforced but where all properties fit");
    }
    const NodeId close = json_.space(builder_.literal("}", next));
    // From the last property to the first: the ways on behind it, where it is the first to be
    // written, and where a comma stands before it.
    Ways ways = other_properties(properties, others, close, depth);
    for (auto property = properties.rbegin(); property != properties.rend(); ++property) {
      const Schema key = property->name;
      const NodeId value = schema(property->schema, ways.later, depth + 1);
      const NodeId member = builder_.literal(key.dump(), builder_.literal(":", json_.space(value)));
      if (member == kNothing && property->required) return kNothing;
      Ways before;
      before.first = json_.space(member);
      before.later = builder_.literal(",", json_.space(member));
      if (!property->required) {
        before.first = builder_.either({before.first, ways.first});
        before.later = builder_.either({before.later, ways.later});
      }
      ways = before;
    }
    return builder_.literal("{", ways.first);
  }

  struct Ways {
    NodeId first = kNothing;
    NodeId later = kNothing;
  };

  Ways other_properties(const std::vector<Property>& properties, const Schema& others, NodeId close,
                        int depth) {
    if (others == false) return {close, close};
    std::vector<std::string> names;
    names.reserve(properties.size());
    for (const Property& property : properties) names.push_back(property.name);
    const NodeId loop = builder_.reserve();
    const NodeId value = schema(others, loop, depth + 1);
    const NodeId member =
        key_other_than(builder_, names, builder_.literal(":", json_.space(value)));
    const NodeId later = builder_.either({close, builder_.literal(",", json_.space(member))});
    builder_.define(loop, later);
    return {builder_.either({close, json_.space(member)}), loop};
  }

  const Schema& root_;
  SchemaDocument document_;
  GrammarBuilder& builder_;
  JsonGrammar& json_;
  std::map<std::string, NodeId> rules_;
};

}  // namespace

NodeId add_json_schema(GrammarBuilder& builder, JsonGrammar& json,
                       const nlohmann::ordered_json& schema, NodeId next) {
  return Compiler(builder, json, schema).run(next);
}

Grammar compile_json_schema(const nlohmann::ordered_json& schema) {
  GrammarBuilder builder;
  JsonGrammar json(builder);
  return builder.finish(add_json_schema(builder, json, schema, kEnd));
}

Grammar any_json_object() {
  GrammarBuilder builder;
  JsonGrammar json(builder);
  const NodeId start = json.object(GrammarBuilder::kEnd);
  return builder.finish(start);
}

}  // namespace edgerunner
