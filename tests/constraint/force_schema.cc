// force_schema VOCABULARY.gguf SEED: for each JSON schema on a line of standard input, a line of
// JSON: what comes out where random tokens are forced of those that the schema allows. It tries the
// ones most likely to do harm: {"text", "finished"}, or {"error"} where the schema is refused.
#include <fmt/core.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "constraint/constraint.h"
#include "constraint/json_schema.h"
#include "edgerunner/error.h"
#include "gguf/file.h"
#include "tokenizer/load.h"

namespace edgerunner {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFree = 150;  // tokens of any kind, then such as close what is open
constexpr int kMost = 3000;

std::vector<TokenId> allowed_tokens(std::span<const std::uint64_t> mask, std::size_t size) {
  std::vector<TokenId> tokens;
  for (TokenId token = 0; static_cast<std::size_t>(token) < size; ++token) {
    if (Constraint::allows(mask, token)) tokens.push_back(token);
  }
  return tokens;
}

class Forcer {
 public:
  Forcer(const Tokenizer& tokenizer, unsigned seed)
      : tokenizer_(tokenizer), trie_(std::make_shared<TokenTrie>(tokenizer)), random_(seed) {
    for (const char* text : {"\"", "}", "]", "0", "1", "e", "a", "null", "true"}) {
      const TokenId token = tokenizer.find(text);
      if (token != kNoToken) closing_.push_back(token);
    }
  }

  Json run(const Json& schema) {
    std::string text;
    try {
      Constraint constraint(std::make_shared<Grammar>(compile_json_schema(schema)), trie_);
      for (int i = 0; i < kMost; ++i) {
        const auto mask = constraint.mask();
        const TokenId token = choose(mask, i);
        if (tokenizer_.is_end_of_generation(token)) return {{"text", text}, {"finished", true}};
        constraint.accept(token);
        text += tokenizer_.token_bytes(token);
      }
      return {{"text", text}, {"finished", false}};
    } catch (const Error& error) {
      return {{"error", error.what()}};
    }
  }

 private:
  TokenId choose(std::span<const std::uint64_t> mask, int i) {
    const std::vector<TokenId> tokens = allowed_tokens(mask, tokenizer_.size());
    if (i >= kFree) {
      for (const TokenId token : tokens) {
        if (tokenizer_.is_end_of_generation(token)) return token;
      }
      for (const TokenId token : closing_) {
        if (Constraint::allows(mask, token)) return token;
      }
    }
    // Of some, the one with the most marks in it.
    TokenId worst = tokens[random_() % tokens.size()];
    std::size_t marks = 0;
    for (int attempt = 0; attempt < static_cast<int>(random_() % 8); ++attempt) {
      const TokenId token = tokens[random_() % tokens.size()];
      std::size_t count = 0;
      for (const char c : tokenizer_.token_bytes(token)) {
        if (std::string_view("\"\\{}[]:,\n0.-e").find(c) != std::string_view::npos) ++count;
      }
      if (count > marks) {
        worst = token;
        marks = count;
      }
    }
    return worst;
  }

  const Tokenizer& tokenizer_;
  std::shared_ptr<const TokenTrie> trie_;
  std::mt19937 random_;
  std::vector<TokenId> closing_;
};

}  // namespace
}  // namespace edgerunner

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: force_schema VOCABULARY.gguf SEED < schemas\n";
    return 2;
  }
  const auto tokenizer = edgerunner::load_tokenizer(edgerunner::gguf::File::open(argv[1]));
  edgerunner::Forcer forcer(*tokenizer, static_cast<unsigned>(std::atoi(argv[2])));
  for (std::string line; std::getline(std::cin, line);) {
    const auto schema = nlohmann::ordered_json::parse(line);
    std::cout << forcer.run(schema).dump(-1, ' ', true,
                                         nlohmann::ordered_json::error_handler_t::replace)
              << "\n";
  }
  return 0;
}
