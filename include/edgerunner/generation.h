#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "edgerunner/adapter.h"
#include "edgerunner/sampling.h"
#include "edgerunner/types.h"

namespace edgerunner {

// How the coming tokens of a text are guessed ahead (SpeculationOptions). It changes times alone.
enum class Guessing {
  as_loaded,  // as the model was loaded to
  off,
  lookup,  // from the text itself
};

// When a generation ends. Whatever comes first ends it: the model's own end of generation, a stop,
// a limit, a full context, a cancellation.
struct GenerateOptions {
  std::uint32_t max_tokens = 0;  // 0: as many as the model and the context allow
  SamplingOptions sampling;

  // Stop strings. The text ends before the one that is complete first (of several that end at the
  // same place, the longest), however it is cut into tokens. Text that may be the beginning of a
  // stop string is held back until it is known not to be.
  std::vector<std::string> stop;
  std::vector<TokenId> stop_tokens;  // beside the model's own end of generation
  bool ignore_eos = false;           // the model's end of generation is a token like any other
  // What the text must be: JSON that a JSON Schema holds for (the text of the schema), or a text of
  // a grammar in GBNF. At most one of them; empty: anything. Only tokens that go on with such a
  // text are chosen from, and a generation that ends with FinishReason::stop has a whole one; other
  // ends may cut it. Error(invalid_argument) names the keyword, or the line, that can't be
  // enforced.
  std::string json_schema;
  std::string grammar;

  // The adapters that apply, of those that were loaded with the model; those not listed don't.
  // Unset: all, with the scales that they were loaded with. Error(invalid_argument) for an id that
  // is not there.
  std::optional<std::vector<AdapterScale>> adapters;

  // Control tokens whose spelling is part of the text; those of others is not.
  std::vector<TokenId> visible_tokens;

  // A context of n tokens takes a prompt of n tokens, and the last token generated need not fit. By
  // default a generation that needs more ends with FinishReason::context_full, and a longer prompt
  // is refused. A circular context drops the oldest half of what follows the first `keep_tokens`
  // tokens instead, computes the rest anew, as if it were a fresh prompt, and goes on.
  bool circular_context = false;
  std::uint32_t keep_tokens = 0;  // less than the context

  // `lookup` needs a model with room for guesses (ModelInfo::draft_tokens).
  Guessing guessing = Guessing::as_loaded;
  std::uint32_t draft_tokens = 0;  // most guessed at once; 0, or more: as the model was loaded
};

enum class FinishReason {
  stop,          // the model's end of generation, a stop token or a stop string
  length,        // max_tokens
  cancelled,     // by request; what was generated until then is complete
  context_full,  // the next token could not have been computed
};
const char* name(FinishReason reason);  // as spelled here

// What a generation did, complete when its text has ended.
struct Summary {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t reused_tokens = 0;     // of the prompt, found in the KV cache
  std::uint32_t generated_tokens = 0;  // tokens.size()
  std::uint32_t drafted_tokens = 0;    // that were guessed and checked (SpeculationOptions)
  std::uint32_t accepted_tokens = 0;   // of these, guessed right
  std::uint32_t context_shifts = 0;    // times that a circular context dropped tokens
  double prefill_seconds = 0;          // from the first forward pass to the first token
  double decode_seconds = 0;           // from the first token to the last
  double time_to_first_token_s = 0;    // from the call, waiting for other generations included
  double prefill_tps = 0;              // computed prompt tokens a second
  double decode_tps = 0;               // tokens after the first a second
  FinishReason finish_reason = FinishReason::stop;
  // What was generated, without the end of generation or stop token that ended it. The tokens of a
  // stop string are all there.
  std::vector<TokenId> tokens;
};

// One running generation: an input range of pieces of text, none empty and each valid UTF-8 (what
// never became a character is replaced by U+FFFD).
//   for (const std::string& piece : model.generate("Once")) std::cout << piece << std::flush;
// It runs ahead of its reader. Destroying it cancels it. One thread may iterate; cancel() may be
// called from any.
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

  // Waits for the next piece, as ++ does. Where the generation fails, the pieces before the failure
  // come first, then either throws its Error.
  Iterator begin();
  std::default_sentinel_t end() const { return {}; }

  // Waits for at most so long; whether the next piece or the end is there, so that begin() and ++
  // would not wait.
  bool wait_for(std::chrono::milliseconds timeout) const;

  // Takes effect before the next forward pass. The range ends after the pieces that are ready.
  void cancel();

  // Waits for the end (dropping pieces not yet read) and gives the summary, or throws the error.
  const Summary& summary();

  explicit Generation(std::shared_ptr<State> state);  // made by Model

 private:
  std::shared_ptr<State> state_;
};

}  // namespace edgerunner
