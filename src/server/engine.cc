#include "server/engine.h"

#include <fmt/format.h>

#include <utility>

#include "edgerunner/error.h"
#include "runtime/generation_task.h"
#include "runtime/model_state.h"
#include "server/api_error.h"

namespace edgerunner::server {

void Engine::set_model(Model model) {
  model_.emplace(std::move(model));
  const ModelInfo& info = model_->info();
  if (info.chat_template.empty()) {
    template_problem_ = "the model file has no chat template; use /v1/completions";
  } else {
    try {
      template_.emplace(info.chat_template, model_->tokenizer());
    } catch (const Error& error) {
      template_problem_ = error.what();
    }
  }
  ready_ = true;
}

Model& Engine::model() {
  if (!ready_) {
    throw ApiError(503, "server_error", "the model is being loaded; try again soon", "",
                   "model_loading");
  }
  return *model_;
}

const ChatTemplate& Engine::chat_template() {
  model();
  if (!template_) throw ApiError(400, "invalid_request_error", template_problem_);
  return *template_;
}

std::vector<Engine::Place> Engine::take_places(std::size_t count) {
  const std::uint64_t most = std::uint64_t{options_.parallel} + options_.queue;
  std::uint32_t taken = taken_;
  do {
    if (taken + count > most) {
      metrics_.count_rejected();
      throw ApiError(
          429, "rate_limit_error",
          fmt::format("{} sequences run or wait and {} may; try again later", taken, most), "",
          "queue_full");
    }
  } while (!taken_.compare_exchange_weak(taken, taken + static_cast<std::uint32_t>(count)));
  std::vector<Place> places;
  places.reserve(count);
  for (std::size_t i = 0; i < count; ++i) places.emplace_back(taken_);
  return places;
}

void Engine::submit(std::span<const TokenId> prompt, const GenerateOptions& options,
                    std::shared_ptr<const Grammar> grammar, std::shared_ptr<GenerationSink> sink) {
  Model::State& state = state_of(model());
  std::unique_ptr<Constraint> constraint;
  if (grammar) {
    constraint = std::make_unique<Constraint>(
        std::move(grammar), state.trie.of(*state.tokenizer, options.visible_tokens));
  }
  const GenerationLimits limits{.vocab_size = state.info.vocab_size,
                                .context = state.info.context,
                                .draft_tokens = state.info.draft_tokens,
                                .trie = &state.trie,
                                .adapters = &state.adapters};
  state.scheduler->submit(
      std::make_shared<GenerationTask>(state.tokenizer.get(), limits, prompt, options,
                                       std::move(sink), std::stop_token(), std::move(constraint)));
}

void Engine::submit(std::shared_ptr<Task> task) {
  state_of(model()).scheduler->submit(std::move(task));
}

std::shared_ptr<const AdapterSet> Engine::adapters() {
  return state_of(model()).adapters.choose(std::nullopt);
}

std::uint32_t Engine::embedding_size() { return state_of(model()).decoder.spec.dim; }

SchedulerStatus Engine::status() { return state_of(model()).scheduler->status(); }

}  // namespace edgerunner::server
