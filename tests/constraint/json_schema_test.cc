#include "constraint/json_schema.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "accepts.h"
#include "support/expect_error.h"

namespace edgerunner {
namespace {

using Json = nlohmann::ordered_json;

std::shared_ptr<const Grammar> schema(const std::string& text) {
  return std::make_shared<Grammar>(compile_json_schema(Json::parse(text)));
}

void check(const std::string& text, const std::vector<std::string>& good,
           const std::vector<std::string>& bad) {
  const auto grammar = schema(text);
  for (const std::string& json : good) {
    EXPECT_TRUE(test::accepts(grammar, json)) << text << " should allow " << json;
  }
  for (const std::string& json : bad) {
    EXPECT_FALSE(test::accepts(grammar, json)) << text << " should not allow " << json;
  }
}

void refuses(const std::string& text, const std::string& keyword) {
  SCOPED_TRACE(text);
  test::expect_error(ErrorCode::invalid_argument, keyword,
                     [&] { compile_json_schema(Json::parse(text)); });
}

TEST(JsonSchema, HoldsToTypes) {
  check(R"({"type": "string"})", {R"("a\n\u00e9 ä")", R"("")"},
        {"1", R"("\ud800")", R"("\x")", "\"\n\"", R"("a)"});
  check(R"({"type": "integer"})", {"0", "-12", "345"}, {"01", "1.5", "-", "1e2", "-0"});
  check(R"({"type": "number"})", {"0", "-1.5", "2e+10", "0.25"}, {".5", "1.", "+1", "1e999"});
  check(R"({"type": ["boolean", "null"]})", {"true", "null"}, {"True", "\"\""});
  check("{}", {R"({"a": [1, {}, null]})", "[]", "3"}, {"", "{", "[1,]"});
  check("true", {"1"}, {""});
}

TEST(JsonSchema, HoldsToValues) {
  check(R"({"enum": ["a", 1, null, {"x": [1]}]})", {R"("a")", "1", "null", R"({"x":[1]})"},
        {R"("b")", "2"});
  check(R"({"const": "ä\""})", {R"("ä\"")"}, {R"("ä")"});
  check(R"({"enum": ["a", 1], "type": "string"})", {R"("a")"}, {"1"});
}

TEST(JsonSchema, HoldsToLengths) {
  check(R"({"type": "string", "minLength": 2, "maxLength": 3})",
        {R"("ab")", R"("😀ä\n")", R"("\u00e9b")"}, {R"("a")", R"("abcd")"});
  check(R"({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2})",
        {"[1]", "[1, 2]", "[ 1,2 ]"}, {"[]", "[1,2,3]", "[1,]", R"(["a"])"});
  check(R"({"type": "array", "maxItems": 0})", {"[]"}, {"[1]"});
}

TEST(JsonSchema, HoldsToBounds) {
  check(R"({"type": "integer", "minimum": -5, "maximum": 120})",
        {"-5", "0", "7", "99", "100", "120"}, {"-6", "121", "1000", "-10", "007"});
  check(R"({"type": "integer", "exclusiveMinimum": 10})", {"11", "100", "99"}, {"10", "9", "-11"});
  check(R"({"type": "integer", "maximum": -3})", {"-3", "-30"}, {"-2", "0", "3"});
  check(R"({"type": "number", "minimum": 0.5, "exclusiveMaximum": 2})",
        {"0.5", "0.50", "1", "1.999", "0.75"}, {"0.4", "0.49", "2", "2.0", "0", "-1"});
  check(R"({"type": "number", "exclusiveMinimum": -1.5, "maximum": 0})",
        {"-1.4", "-1.49", "-1", "0", "-0.5"}, {"-1.5", "-1.50", "-2", "0.1"});
  refuses(R"({"type": "integer", "minimum": 3, "maximum": 2})", "schema");
  refuses(R"({"type": "integer", "exclusiveMinimum": 2, "exclusiveMaximum": 3})", "schema");
}

TEST(JsonSchema, HoldsToPatterns) {
  check(R"({"type": "string", "pattern": "^[a-c]{2,3}-\\d+$"})", {R"("ab-1")", R"("abc-12")"},
        {R"("a-1")", R"("abcd-1")", R"("ab-")", R"("xab-1")"});
  check(R"({"type": "string", "pattern": "b|^c"})", {R"("abd")", R"("cx")"}, {R"("xc")"});
  check(R"({"type": "string", "pattern": "^(?:a|\"|\\\\)*$"})", {R"("a\"\\")", R"("")"},
        {R"("b")"});
  check(R"({"type": "string", "pattern": "^[^a]$"})", {R"("b")", R"("😀")", R"("\"")"},
        {R"("a")", R"("bb")"});
  check(R"({"type": "string", "format": "date"})", {R"("2024-02-28")"}, {R"("2024-02-30")"});
  for (const char* pattern : {"(?=a)", "\\\\bx", "(a", "a**", "\\\\1", "[z-a]", "a{9999999}"}) {
    refuses(R"({"type": "string", "pattern": ")" + std::string(pattern) + "\"}", "pattern");
  }
}

TEST(JsonSchema, HoldsToProperties) {
  const std::string text = R"({"type": "object", "properties": {"a": {"type": "integer"},
      "b": {"type": "string"}, "c": {"type": "null"}}, "required": ["a", "c"],
      "additionalProperties": false})";
  check(text,
        {R"({"a":1,"c":null})", R"({"a": 1, "b": "x", "c": null})",
         "{\n  \"a\": 1,\n  \"c\": null\n}"},
        {"{}", R"({"a":1})", R"({"c":null,"a":1})", R"({"a":1,"c":null,"d":1})",
         R"({"a":1,,"c":null})", R"({"a":"1","c":null})"});
  check(R"({"type": "object", "properties": {"a": {}, "b": {}}})",
        {"{}", R"({"a":1})", R"({"b":1})", R"({"a":1,"b":2})"}, {R"({"c":1})", R"({,"b":1})"});
  check(R"({"type": "object", "properties": {"ab": {"type": "integer"}},
            "additionalProperties": {"type": "string"}})",
        {R"({"ab":1})", R"({"ab":1,"a":"x","abc":"y"})", R"({"x":"y"})"},
        {R"({"ab":"x"})", R"({"ab":1,"ab":"x"})", R"({"a":1})", R"({"\u0061b":"x"})"});
  check(R"({"type": "object", "additionalProperties": {"type": "boolean"}})",
        {"{}", R"({"x":true,"y":false})"}, {R"({"x":1})"});
  check(R"({"required": ["x"]})", {R"({"x":[1]})"}, {"{}"});
}

TEST(JsonSchema, ChoosesAmongSchemas) {
  check(R"({"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 1}]})", {"1", R"("a")"},
        {R"("ab")", "null"});
  check(R"({"oneOf": [{"type": "object", "properties": {"k": {"const": "x"}, "v": {"type":
            "integer"}}, "required": ["k", "v"]}, {"type": "object", "properties": {"k": {"const":
            "y"}}, "required": ["k"]}]})",
        {R"({"k":"x","v":1})", R"({"k":"y"})"}, {R"({"k":"x"})", R"({"k":"z"})"});
  check(R"({"type": "string", "anyOf": [{"minLength": 3}, {"const": "a"}]})",
        {R"("abc")", R"("a")"}, {R"("ab")", "1"});
  check(R"({"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}}, {"properties":
            {"b": {"type": "null"}}, "required": ["b"]}]})",
        {R"({"a":1,"b":null})", R"({"b":null})"}, {R"({"a":1})"});
  refuses(R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})", "oneOf");
}

TEST(JsonSchema, FollowsReferences) {
  const std::string tree = R"({"$defs": {"node": {"type": "object", "properties": {"v": {"type":
      "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}, "required":
      ["v", "next"], "additionalProperties": false}}, "$ref": "#/$defs/node"})";
  check(tree, {R"({"v":1,"next":{"v":2,"next":null}})"}, {R"({"v":1})", R"({"v":1,"next":{}})"});
  check(R"({"type": "array", "items": {"$ref": "#"}})", {"[]", "[[],[[]]]"}, {"[1]"});
  refuses(R"({"$ref": "#/nosuch"})", "$ref");
  refuses(R"({"$ref": "http://x/y"})", "$ref");
  refuses(R"({"$ref": "#"})", "ends");
  refuses(R"({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]})", "ends");
  refuses(R"({"$ref": "#", "type": "string"})", "$ref");
}

TEST(JsonSchema, RefusesWhatItCannotEnforceByName) {
  for (const char* keyword : {"not", "if", "contains", "patternProperties", "propertyNames",
                              "dependentRequired", "unevaluatedProperties", "nosuch"}) {
    refuses(Json({{"type", "object"}, {keyword, Json::object()}}).dump(), keyword);
  }
  refuses(R"({"type": "array", "uniqueItems": true})", "uniqueItems");
  refuses(R"({"type": "number", "multipleOf": 0.1})", "multipleOf");
  refuses(R"({"type": "string", "format": "ipv6"})", "format");
  refuses(R"({"type": "string", "pattern": "a", "minLength": 3})", "minLength");
  refuses(R"({"type": "string", "maxLength": 1e9})", "maxLength");
  refuses(R"({"type": "date"})", "type");
  refuses("false", "schema");
  refuses("[]", "schema");
}

TEST(JsonSchema, HostileSchemasEndWithAnError) {
  std::string deep = "{}";
  for (int i = 0; i < 500; ++i) deep = R"({"items": )" + deep + "}";
  refuses(deep, "deep");
  refuses(R"({"allOf": [{"$ref": "#"}]})", "$ref");
  std::string wide = R"({"type": "string", "maxLength": 9999})";
  for (int i = 0; i < 3; ++i) {
    wide = R"({"type": "array", "minItems": 9999, "items": )" + wide + "}";
  }
  EXPECT_NO_THROW(schema(wide));
}

}  // namespace
}  // namespace edgerunner
