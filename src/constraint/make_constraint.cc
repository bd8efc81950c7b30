#include "constraint/make_constraint.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/parse_json.h"
#include "constraint/gbnf.h"
#include "constraint/json_schema.h"
#include "edgerunner/error.h"

namespace edgerunner {
namespace {

Grammar schema_grammar(const std::string& text) {
  nlohmann::ordered_json schema;
  try {
    schema = parse_json<nlohmann::ordered_json>(text);
  } catch (const std::exception& error) {
    throw Error(ErrorCode::invalid_argument, fmt::format("JSON schema: {}", error.what()));
  }
  return compile_json_schema(schema);
}

}  // namespace

std::shared_ptr<const TokenTrie> SharedTrie::of(const Tokenizer& tokenizer,
                                                std::span<const TokenId> visible) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const TokenTrie>& trie =
      tries_[std::vector<TokenId>(visible.begin(), visible.end())];
  if (!trie) trie = std::make_shared<TokenTrie>(tokenizer, visible);
  return trie;
}

std::unique_ptr<Constraint> make_constraint(const std::string& json_schema,
                                            const std::string& grammar, const Tokenizer* tokenizer,
                                            SharedTrie* trie) {
  if (json_schema.empty() && grammar.empty()) return nullptr;
  if (!json_schema.empty() && !grammar.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "json_schema and grammar: a text can be held to one of them, not both");
  }
  if (tokenizer == nullptr) {
    throw Error(ErrorCode::unsupported,
                "json_schema and grammar need a tokenizer, which this file has not");
  }
  auto compiled = std::make_shared<const Grammar>(
      json_schema.empty() ? parse_gbnf(grammar) : schema_grammar(json_schema));
  SharedTrie own;
  return std::make_unique<Constraint>(std::move(compiled),
                                      (trie != nullptr ? *trie : own).of(*tokenizer));
}

}  // namespace edgerunner
