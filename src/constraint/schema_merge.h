#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace edgerunner {

using Schema = nlohmann::ordered_json;

// The places of a schema's document that it refers to, and schemas made one.
class SchemaDocument {
 public:
  explicit SchemaDocument(const Schema& root) : root_(root) {}

  // The schema at "#/...". Throws Error(invalid_argument) for what is not there.
  const Schema& at(const std::string& reference) const;

  // The schema without $ref, allOf, anyOf or oneOf at its top: what it refers to made part of it.
  // anyOf and oneOf are left where they can't be.
  Schema resolved(const Schema& schema, int depth = 0) const;

  // A schema for what both hold for. Throws Error(invalid_argument) naming the keyword that can't
  // be made one.
  Schema merged(const Schema& a, const Schema& b, int depth = 0) const;

  // Whether no value is of both, as far as that can be seen.
  bool exclude_each_other(const Schema& a, const Schema& b, int depth = 0) const;

 private:
  const Schema& root_;
};

// Keywords that say something about a schema and nothing about values.
bool is_annotation(std::string_view keyword);

}  // namespace edgerunner
