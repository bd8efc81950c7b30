#include "constraint/schema_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "edgerunner/error.h"

namespace edgerunner {
namespace {

constexpr int kMostNesting = 64;

[[noreturn]] void fail(std::string_view keyword, std::string_view what) {
  throw Error(ErrorCode::invalid_argument, fmt::format("JSON schema: {}: {}", keyword, what));
}

void check_depth(int depth) {
  if (depth > kMostNesting) fail("$ref", "the schema refers to itself without end");
}

std::set<std::string> types_of(const Schema& schema) {
  std::set<std::string> types;
  const auto add_value = [&types](const Schema& value) {
    types.insert(value.is_object()    ? "object"
                 : value.is_array()   ? "array"
                 : value.is_string()  ? "string"
                 : value.is_boolean() ? "boolean"
                 : value.is_null()    ? "null"
                                      : "number");
  };
  if (schema.contains("const")) {
    add_value(schema["const"]);
  } else if (schema.contains("enum") && schema["enum"].is_array()) {
    for (const Schema& value : schema["enum"]) add_value(value);
  } else if (schema.contains("type")) {
    const Schema& type = schema["type"];
    if (type.is_string()) types.insert(type.get<std::string>());
    if (type.is_array()) {
      for (const Schema& one : type) {
        if (one.is_string()) types.insert(one.get<std::string>());
      }
    }
  } else {
    types = {"object", "array", "string", "boolean", "null", "number"};
  }
  if (types.erase("integer") > 0) types.insert("number");
  return types;
}

std::vector<Schema> values_of(const Schema& schema) {
  if (schema.contains("const")) return {schema["const"]};
  if (schema.contains("enum") && schema["enum"].is_array()) {
    return {schema["enum"].begin(), schema["enum"].end()};
  }
  return {};
}

Schema merged_types(const Schema& a, const Schema& b) {
  const auto list = [](const Schema& type) {
    return type.is_array() ? std::vector<Schema>(type.begin(), type.end())
                           : std::vector<Schema>{type};
  };
  Schema both = Schema::array();
  for (const Schema& x : list(a)) {
    for (const Schema& y : list(b)) {
      if (x == y) both.push_back(x);
      if (x == "integer" && y == "number") both.push_back(x);
      if (x == "number" && y == "integer") both.push_back(y);
    }
  }
  return both;
}

// Without additional properties, what the other schema names beyond its own can't be there.
void check_closed(const Schema& closed, const Schema& other) {
  if (!closed.contains("additionalProperties") || closed["additionalProperties"] == true) return;
  if (!other.contains("properties")) return;
  for (const auto& [name, schema] : other["properties"].items()) {
    if (!closed.contains("properties") || !closed["properties"].contains(name)) {
      fail("additionalProperties", "it can't be enforced across allOf, anyOf or $ref");
    }
  }
}

}  // namespace

bool is_annotation(std::string_view keyword) {
  constexpr std::array<std::string_view, 16> kAnnotations = {
      "title", "description", "default",  "examples",  "$schema", "$id", "$comment", "deprecated",
      "$defs", "definitions", "readOnly", "writeOnly", "$anchor", "id",  "name",     "strict"};
  return std::find(kAnnotations.begin(), kAnnotations.end(), keyword) != kAnnotations.end();
}

const Schema& SchemaDocument::at(const std::string& reference) const {
  if (reference == "#") return root_;
  if (!reference.starts_with("#/")) {
    fail("$ref",
         fmt::format("\"{}\" is outside the schema; only \"#/...\" can be followed", reference));
  }
  try {
    const Schema::json_pointer pointer(reference.substr(1));
    if (root_.contains(pointer)) return root_.at(pointer);
  } catch (const Schema::exception&) {
    fail("$ref", fmt::format("\"{}\" is no JSON pointer", reference));
  }
  fail("$ref", fmt::format("\"{}\" is not there", reference));
}

Schema SchemaDocument::resolved(const Schema& schema, int depth) const {
  check_depth(depth);
  if (!schema.is_object()) return schema;
  Schema result = schema;
  if (schema.contains("$ref")) {
    if (!schema["$ref"].is_string()) fail("$ref", "it must be a string");
    const Schema target = resolved(at(schema["$ref"].get<std::string>()), depth + 1);
    result.erase("$ref");
    return merged(result, target, depth + 1);
  }
  if (schema.contains("allOf")) {
    if (!schema["allOf"].is_array()) fail("allOf", "it must be an array");
    result.erase("allOf");
    for (const Schema& part : schema["allOf"]) {
      result = merged(result, resolved(part, depth + 1), depth + 1);
    }
  }
  return result;
}

Schema SchemaDocument::merged(const Schema& a, const Schema& b, int depth) const {
  check_depth(depth);
  if (a.is_boolean()) return a == true ? b : a;
  if (b.is_boolean()) return b == true ? a : b;
  if (!a.is_object() || !b.is_object()) fail("schema", "it must be an object, true or false");
  if (a.contains("$ref") || a.contains("allOf"))
    return merged(resolved(a, depth + 1), b, depth + 1);
  if (b.contains("$ref") || b.contains("allOf"))
    return merged(a, resolved(b, depth + 1), depth + 1);
  check_closed(a, b);
  check_closed(b, a);
  Schema result = a;
  for (const auto& [keyword, value] : b.items()) {
    if (!a.contains(keyword)) {
      result[keyword] = value;
      continue;
    }
    const Schema& other = a[keyword];
    if (other == value || is_annotation(keyword)) continue;
    if (keyword == "type") {
      result[keyword] = merged_types(other, value);
      if (result[keyword].empty()) return false;
    } else if (keyword == "properties") {
      for (const auto& [name, property] : value.items()) {
        result[keyword][name] =
            other.contains(name) ? merged(other[name], property, depth + 1) : property;
      }
    } else if (keyword == "required") {
      for (const Schema& name : value) {
        if (std::find(other.begin(), other.end(), name) == other.end()) {
          result[keyword].push_back(name);
        }
      }
    } else if (keyword == "items") {
      result[keyword] = merged(other, value, depth + 1);
    } else if (keyword == "enum") {
      result[keyword] = Schema::array();
      for (const Schema& one : value) {
        if (std::find(other.begin(), other.end(), one) != other.end()) {
          result[keyword].push_back(one);
        }
      }
      if (result[keyword].empty()) return false;
    } else if (keyword == "const") {
      return false;
    } else if (keyword.starts_with("min") || keyword == "exclusiveMinimum") {
      result[keyword] = std::max(other, value);
    } else if (keyword.starts_with("max") || keyword == "exclusiveMaximum") {
      result[keyword] = std::min(other, value);
    } else {
      fail(keyword, "it is there twice with different values, which can't be made one");
    }
  }
  return result;
}

bool SchemaDocument::exclude_each_other(const Schema& a, const Schema& b, int depth) const {
  if (depth > 8) return false;
  if (a == false || b == false) return true;
  if (!a.is_object() || !b.is_object()) return false;
  const Schema x = resolved(a);
  const Schema y = resolved(b);
  if (!x.is_object() || !y.is_object()) return x == false || y == false;
  const std::set<std::string> types = types_of(x);
  const std::set<std::string> others = types_of(y);
  const bool common_type = std::any_of(
      types.begin(), types.end(), [&](const std::string& type) { return others.contains(type); });
  if (!common_type) return true;
  const std::vector<Schema> values = values_of(x);
  const std::vector<Schema> other_values = values_of(y);
  if (!values.empty() && !other_values.empty()) {
    return std::none_of(values.begin(), values.end(), [&](const Schema& value) {
      return std::find(other_values.begin(), other_values.end(), value) != other_values.end();
    });
  }
  // Objects: a property that both require, and whose schemas exclude each other.
  if (types != std::set<std::string>{"object"} || others != types) return false;
  if (!x.contains("required") || !y.contains("required")) return false;
  if (!x.contains("properties") || !y.contains("properties")) return false;
  for (const Schema& name : x["required"]) {
    if (!name.is_string() ||
        std::find(y["required"].begin(), y["required"].end(), name) == y["required"].end()) {
      continue;
    }
    const auto key = name.get<std::string>();
    if (x["properties"].contains(key) && y["properties"].contains(key) &&
        exclude_each_other(x["properties"][key], y["properties"][key], depth + 1)) {
      return true;
    }
  }
  return false;
}

}  // namespace edgerunner
