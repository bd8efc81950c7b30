#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/model_state.h"
#include "support/scripted_executor.h"
#include "support/scripted_tokenizer.h"

namespace edgerunner::test {

struct ScriptedModelOptions {
  std::uint32_t context = 1024;
  std::uint32_t pages = 64;
  std::uint32_t prefill_chunk = 512;
  std::uint32_t max_sequences = 8;
  std::uint32_t window = 0;
  std::vector<std::string> pieces;  // tokens from ScriptedTokenizer::kFirstPiece on
  bool tokenizer = true;
  std::string chat_template;
  std::uint32_t dim = 0;  // of hidden states
  std::function<void(const Batch&)> before_forward;
  bool chooses_tokens = false;  // as a backend does that samples itself
  BurstLength::Duration longest_burst = BurstLength::kLongest;
  std::function<std::unique_ptr<Drafter>()> drafter;  // what guesses; always as much as it may
  std::uint32_t draft_rows = 16;                      // of a pass, of all sequences
  bool lookup_on_request = false;                     // room for guesses without a drafter
};

// A model whose output a script dictates, and a view of its executor.
struct ScriptedModel {
  ScriptedModel(ScriptedExecutor::Script script, const ScriptedModelOptions& options = {})
      : ScriptedModel(make(std::move(script), options)) {}

  Model model;
  ScriptedExecutor* executor;

 private:
  explicit ScriptedModel(std::pair<Model, ScriptedExecutor*> made)
      : model(std::move(made.first)), executor(made.second) {}

  static std::pair<Model, ScriptedExecutor*> make(ScriptedExecutor::Script script,
                                                  const ScriptedModelOptions& options) {
    auto tokenizer = std::make_unique<ScriptedTokenizer>(options.pieces);
    ModelInfo info;
    info.vocab_size = static_cast<std::uint32_t>(tokenizer->size());
    info.context = options.context;
    info.chat_template = options.chat_template;
    ExecutorOptions limits;
    if (options.drafter || options.lookup_on_request) info.draft_tokens = options.draft_rows;
    limits.max_logit_rows = options.max_sequences + info.draft_tokens;
    limits.max_rows = options.prefill_chunk + limits.max_logit_rows;
    limits.pages = options.pages;
    limits.max_context = options.context;
    auto executor = std::make_unique<ScriptedExecutor>(info.vocab_size, std::move(script), limits,
                                                       options.window);
    executor->before_forward = options.before_forward;
    if (options.chooses_tokens) executor->choose_tokens();
    ScriptedExecutor* view = executor.get();
    SchedulerOptions scheduling;
    scheduling.vocab_size = info.vocab_size;
    scheduling.prefill_chunk = options.prefill_chunk;
    scheduling.max_sequences = options.max_sequences;
    scheduling.window = options.window;
    scheduling.dim = options.dim;
    scheduling.longest_burst = options.longest_burst;
    scheduling.adaptive_drafts = false;
    if (!options.tokenizer) tokenizer.reset();
    return {make_model(std::move(executor), std::move(tokenizer), info, scheduling,
                       options.drafter ? options.drafter() : nullptr),
            view};
  }
};

// After `prompt`, `output` token by token, then the end of the text.
inline ScriptedExecutor::Script say(std::string_view prompt, std::vector<TokenId> output) {
  return [length = prompt.size(), output = std::move(output)](std::span<const TokenId> seen) {
    const std::size_t at = seen.size() - length;
    return at < output.size() ? output[at] : ScriptedTokenizer::kEnd;
  };
}

// The same with the bytes of a text as tokens.
inline ScriptedExecutor::Script say(std::string_view prompt, std::string_view text) {
  return say(prompt, ScriptedTokenizer().encode(text, {}));
}

}  // namespace edgerunner::test
