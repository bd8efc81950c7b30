#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "constraint/constraint.h"
#include "edgerunner/tokenizer.h"

namespace edgerunner {

// A tokenizer's tree of tokens, made when it is first asked for and kept. Any thread may ask.
class SharedTrie {
 public:
  std::shared_ptr<const TokenTrie> of(const Tokenizer& tokenizer);

 private:
  std::mutex mutex_;
  std::shared_ptr<const TokenTrie> trie_;
};

// What GenerateOptions asks for; null where it asks for nothing. `trie` may be null. Throws
// Error(invalid_argument) for both at once, text that is no JSON, or what can't be enforced;
// Error(unsupported) without a tokenizer.
std::unique_ptr<Constraint> make_constraint(const std::string& json_schema,
                                            const std::string& grammar, const Tokenizer* tokenizer,
                                            SharedTrie* trie);

}  // namespace edgerunner
