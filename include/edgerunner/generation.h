#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "edgerunner/sampling.h"
#include "edgerunner/types.h"

namespace edgerunner {

struct GenerateOptions {
  std::uint32_t max_tokens = 0;  // 0: until the model ends or the context is full
  SamplingOptions sampling;
  std::vector<std::string> stop;     // generation ends before the first of these; never emitted
  std::vector<TokenId> stop_tokens;  // beside the model's own
  bool ignore_eos = false;
  // When the context is full, drop the oldest half of what follows the first `keep_tokens`, compute
  // the rest anew and go on, instead of ending with context_full. The summary counts how often.
  bool circular_context = false;
  std::uint32_t keep_tokens = 0;
};

enum class FinishReason { stop, length, cancelled, context_full };
const char* name(FinishReason reason);

// What a generation did, complete when its text has ended.
struct Summary {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t reused_tokens = 0;  // of the prompt, found in the KV cache
  std::uint32_t generated_tokens = 0;
  std::uint32_t context_shifts = 0;
  double prefill_seconds = 0;
  double decode_seconds = 0;
  double time_to_first_token_s = 0;
  double prefill_tps = 0;  // computed prompt tokens a second
  double decode_tps = 0;   // generated tokens after the first, a second
  FinishReason finish_reason = FinishReason::stop;
  std::vector<TokenId> tokens;  // generated, without the one that ended it
};

// One running generation: an input range of pieces of text, each valid UTF-8.
//   for (const std::string& piece : model.generate("Once")) std::cout << piece << std::flush;
// Destroying it cancels it. One thread may iterate; cancel() may be called from any.
class Generation {
 public:
  struct State;

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = std::string;
    using difference_type = std::ptrdiff_t;
    using pointer = const std::string*;
    using reference = const std::string&;

    reference operator*() const;
    pointer operator->() const { return &**this; }
    Iterator& operator++();
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) { return it.at_end(); }

   private:
    friend class Generation;
    explicit Iterator(State* state) : state_(state) {}
    bool at_end() const;
    State* state_;
  };

  Generation(Generation&&) noexcept;
  Generation& operator=(Generation&&) noexcept;
  ~Generation();

  // Waits for the first piece. An error of the generation is thrown here or by ++.
  Iterator begin();
  std::default_sentinel_t end() const { return {}; }

  void cancel();
  // Waits for the end (dropping pieces not yet read) and gives the summary.
  const Summary& summary();

  explicit Generation(std::shared_ptr<State> state);  // made by Model

 private:
  std::shared_ptr<State> state_;
};

}  // namespace edgerunner
