#include "edgerunner/model.h"

#include <utility>

#include "edgerunner/error.h"
#include "runtime/generation_state.h"
#include "runtime/generation_task.h"
#include "runtime/model_state.h"
#include "runtime/session_state.h"

namespace edgerunner {
namespace {

std::vector<TokenId> encode_prompt(const Model& model, std::string_view prompt) {
  return model.tokenizer().encode(prompt, {.add_special = true, .parse_special = true});
}

Summary consume(Generation generation, const Model::PieceCallback& on_piece) {
  for (const std::string& piece : generation) {
    if (on_piece(piece)) continue;
    generation.cancel();
    break;
  }
  return generation.summary();
}

}  // namespace

Model make_model(std::unique_ptr<Executor> executor, std::unique_ptr<Tokenizer> tokenizer,
                 const ModelInfo& info, const SchedulerOptions& options,
                 std::unique_ptr<Drafter> drafter) {
  auto state = std::make_unique<Model::State>();
  state->tokenizer = std::move(tokenizer);
  state->executor = std::move(executor);
  state->info = info;
  state->scheduler = std::make_shared<Scheduler>(*state->executor, options, std::move(drafter));
  return Model(std::move(state));
}

Model::State& state_of(Model& model) { return *model.state_; }

Model::Model(std::unique_ptr<State> state) : state_(std::move(state)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

std::future<Model> Model::load_async(std::filesystem::path path, ModelOptions options) {
  return std::async(std::launch::async, [path = std::move(path), options = std::move(options)] {
    return load(path, options);
  });
}

const Tokenizer& Model::tokenizer() const {
  if (state_->tokenizer) return *state_->tokenizer;
  throw Error(ErrorCode::unsupported,
              "the model file has no tokenizer; hand over token ids instead of text");
}

const ModelInfo& Model::info() const { return state_->info; }

Generation Model::generate(std::span<const TokenId> prompt, const GenerateOptions& options,
                           std::stop_token stop) {
  const GenerationLimits limits{.vocab_size = state_->info.vocab_size,
                                .context = state_->info.context,
                                .draft_tokens = state_->info.draft_tokens,
                                .trie = &state_->trie,
                                .adapters = &state_->adapters};
  auto outcome = std::make_shared<Generation::State>();
  state_->scheduler->submit(std::make_shared<GenerationTask>(
      state_->tokenizer.get(), limits, prompt, options, outcome, std::move(stop)));
  return Generation(std::move(outcome));
}

Generation Model::generate(std::string_view prompt, const GenerateOptions& options,
                           std::stop_token stop) {
  return generate(encode_prompt(*this, prompt), options, std::move(stop));
}

Summary Model::generate(std::string_view prompt, const PieceCallback& on_piece,
                        const GenerateOptions& options, std::stop_token stop) {
  return consume(generate(prompt, options, std::move(stop)), on_piece);
}

Summary Model::generate(std::span<const TokenId> prompt, const PieceCallback& on_piece,
                        const GenerateOptions& options, std::stop_token stop) {
  return consume(generate(prompt, options, std::move(stop)), on_piece);
}

Session Model::session(const std::optional<std::vector<AdapterScale>>& adapters) {
  return Session(std::make_unique<Session::State>(state_->scheduler, state_->info.vocab_size,
                                                  state_->info.context,
                                                  state_->adapters.choose(adapters)));
}

void Model::cancel_all() { state_->scheduler->cancel_all(); }

void Model::trim_memory() {
  state_->scheduler->forget_unused();
  if (state_->file) state_->file->dont_need();
}

}  // namespace edgerunner
