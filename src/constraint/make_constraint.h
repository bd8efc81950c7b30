#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "constraint/constraint.h"
#include "edgerunner/tokenizer.h"

namespace edgerunner {

// A tokenizer's trees of tokens, each made when it is first asked for and kept: one for every set
// of visible control tokens, of which a model has a few. Any thread may ask.
class SharedTrie {
 public:
  std::shared_ptr<const TokenTrie> of(const Tokenizer& tokenizer,
                                      std::span<const TokenId> visible = {});

 private:
  std::mutex mutex_;
  std::map<std::vector<TokenId>, std::shared_ptr<const TokenTrie>> tries_;
};

// What GenerateOptions asks for; null where it asks for nothing. `trie` may be null. Throws
// Error(invalid_argument) for both at once, text that is no JSON, or what can't be enforced;
// Error(unsupported) without a tokenizer.
std::unique_ptr<Constraint> make_constraint(const std::string& json_schema,
                                            const std::string& grammar, const Tokenizer* tokenizer,
                                            SharedTrie* trie);

}  // namespace edgerunner
