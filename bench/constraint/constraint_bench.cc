// constraint_bench VOCABULARY.gguf: what a token costs where a JSON schema holds a generation to
// it: the mask of allowed tokens and the step that follows, over texts of random allowed tokens.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "constraint/constraint.h"
#include "constraint/json_schema.h"
#include "edgerunner/error.h"
#include "gguf/file.h"
#include "tokenizer/load.h"

namespace edgerunner {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTexts = 20;
constexpr int kTokens = 300;

constexpr const char* kSchema = R"({"type": "object", "properties": {
  "name": {"type": "string"}, "age": {"type": "integer", "minimum": 0, "maximum": 150},
  "tags": {"type": "array", "items": {"type": "string"}},
  "address": {"type": "object", "properties": {"street": {"type": "string"}, "zip": {"type":
    "string", "pattern": "^[0-9]{5}$"}}, "required": ["street", "zip"]},
  "kind": {"enum": ["person", "company"]}},
  "required": ["name", "age", "tags", "address", "kind"], "additionalProperties": false})";

double microseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

// A random allowed token that is no end.
TokenId choose(std::span<const std::uint64_t> mask, const Tokenizer& tokenizer,
               std::mt19937& random) {
  const auto size = static_cast<std::uint32_t>(tokenizer.size());
  for (std::uint32_t i = 0, begin = random() % size; i < size; ++i) {
    const auto token = static_cast<TokenId>((begin + i) % size);
    if (Constraint::allows(mask, token) && !tokenizer.is_end_of_generation(token)) return token;
  }
  return kNoToken;
}

void run(const char* path) {
  const auto tokenizer = load_tokenizer(gguf::File::open(path));
  const auto begin = Clock::now();
  const auto trie = std::make_shared<TokenTrie>(*tokenizer);
  const auto with_trie = Clock::now();
  const auto grammar =
      std::make_shared<Grammar>(compile_json_schema(nlohmann::ordered_json::parse(kSchema)));
  const auto with_grammar = Clock::now();
  fmt::print("{} tokens; tree of them {:.1f} ms, schema {:.2f} ms\n", tokenizer->size(),
             microseconds(with_trie - begin) / 1000, microseconds(with_grammar - with_trie) / 1000);

  std::mt19937 random(1);
  std::vector<double> times;
  for (int text = 0; text < kTexts; ++text) {
    Constraint constraint(grammar, trie);
    for (int i = 0; i < kTokens; ++i) {
      const auto start = Clock::now();
      const auto mask = constraint.mask();
      const auto masked = Clock::now();
      const TokenId token = choose(mask, *tokenizer, random);
      if (token == kNoToken) break;
      const auto chosen = Clock::now();
      constraint.accept(token);
      times.push_back(microseconds((masked - start) + (Clock::now() - chosen)));
    }
  }
  double total = 0;
  for (const double time : times) total += time;
  std::sort(times.begin(), times.end());
  fmt::print("{} tokens: mean {:.2f} us, median {:.2f} us, 99 % {:.1f} us, most {:.1f} us\n",
             times.size(), total / static_cast<double>(times.size()), times[times.size() / 2],
             times[times.size() * 99 / 100], times.back());
}

}  // namespace
}  // namespace edgerunner

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: constraint_bench VOCABULARY.gguf\n");
    return 2;
  }
  try {
    edgerunner::run(argv[1]);
  } catch (const edgerunner::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
