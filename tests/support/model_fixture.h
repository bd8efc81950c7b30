#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "arch/decoder.h"
#include "backend/executor.h"
#include "edgerunner/types.h"
#include "gguf/file.h"

namespace edgerunner::test {

// A tiny model of tests/fixtures or ../shared/fixtures, and what Hugging Face transformers computes
// for it in float64.
struct ModelFixture {
  std::string name;
  std::string weight_type;
  std::vector<TokenId> prompt;
  std::map<std::uint32_t, std::vector<double>> logits;  // by position; the last one included
  std::vector<TokenId> greedy;                          // continuation of the prompt
  double peak = 0;                                      // largest |logit|
  std::uint32_t context = 0;                            // to allot, so that LongRoPE chooses alike
  gguf::File file;
  Decoder decoder;
};

ModelFixture load_fixture(const std::string& name);

// Names of all fixtures that are here, and of the plain ones (see beyond_plain.h).
std::vector<std::string> all_fixtures();
std::vector<std::string> plain_fixtures();

// Drives one sequence through an executor, with pages in order from `first_page`.
class SequenceRunner {
 public:
  explicit SequenceRunner(Executor& executor, std::uint32_t vocab_size, PageId first_page = 0);

  // Appends tokens in chunks of at most `chunk` rows and returns the logits of each,
  // [tokens][vocab].
  std::vector<std::vector<float>> feed(std::span<const TokenId> tokens, std::uint32_t chunk);
  std::uint32_t length() const { return length_; }

 private:
  Executor* executor_;
  std::uint32_t vocab_size_;
  std::vector<PageId> pages_;
  std::uint32_t length_ = 0;
};

// The largest difference from the fixture at its positions, as a fraction of the peak.
double largest_error(Executor& executor, const ModelFixture& fixture, std::uint32_t chunk);

// Greedy continuation of the fixture's prompt, as many tokens as the fixture gives.
std::vector<TokenId> greedy_continuation(Executor& executor, const ModelFixture& fixture);

}  // namespace edgerunner::test
