#include "edgerunner/embedding.h"

#include <exception>
#include <future>
#include <memory>
#include <utility>

#include "edgerunner/model.h"
#include "runtime/check_tokens.h"
#include "runtime/embedding_task.h"
#include "runtime/model_state.h"

namespace edgerunner {

std::vector<float> embed(Model& model, std::span<const TokenId> tokens, Pooling pooling,
                         std::stop_token stop) {
  Model::State& state = state_of(model);
  check_sequence(tokens, state.info.vocab_size, state.info.context);
  // Shared, for the scheduler's thread may still be in it when the future is ready.
  const auto outcome = std::make_shared<std::promise<std::vector<float>>>();
  const auto task = std::make_shared<EmbeddingTask>(
      std::vector<TokenId>(tokens.begin(), tokens.end()), pooling,
      [outcome](std::vector<float> embedding) { outcome->set_value(std::move(embedding)); },
      [outcome](const std::exception_ptr& error) { outcome->set_exception(error); },
      state.adapters.choose(std::nullopt));
  const std::stop_callback on_stop(std::move(stop), [&task] { task->cancel_requested = true; });
  state.scheduler->submit(task);
  return outcome->get_future().get();
}

std::vector<float> embed(Model& model, std::string_view text, Pooling pooling,
                         std::stop_token stop) {
  return embed(model, model.tokenizer().encode(text, {.add_special = true, .parse_special = true}),
               pooling, std::move(stop));
}

std::uint32_t embedding_size(Model& model) { return state_of(model).decoder.spec.dim; }

}  // namespace edgerunner
