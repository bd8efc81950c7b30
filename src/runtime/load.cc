#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "edgerunner/error.h"
#include "edgerunner/model.h"
#include "runtime/backend.h"
#include "runtime/load_draft.h"
#include "runtime/memory_plan.h"
#include "runtime/model_state.h"
#include "runtime/plan_input.h"
#include "tokenizer/load.h"

namespace edgerunner {
namespace {

// What a user should be told of the plan.
std::vector<std::string> remarks_on(const MemoryPlan& plan, const ModelOptions& options,
                                    const DecoderSpec& spec) {
  const std::uint32_t usual = std::min(spec.context_length, kDefaultContext);
  if (options.context != 0 || plan.context == usual) return {};
  return {fmt::format("the context is {} tokens, not {}: more would not fit into memory",
                      plan.context, usual)};
}

ModelInfo describe(const Model::State& state, const MemoryPlan& plan, const ModelOptions& options) {
  const DecoderSpec& spec = state.decoder.spec;
  ModelInfo info;
  info.architecture = spec.architecture;
  info.name = spec.name;
  info.chat_template = state.file->get_string("tokenizer.chat_template").value_or("");
  for (const gguf::Tensor& tensor : state.file->tensors()) info.parameters += tensor.elements();
  info.file_bytes = state.file->bytes();
  info.cache_bytes = plan.cache_bytes;
  info.scratch_bytes = plan.scratch_bytes;
  info.vocab_size = spec.vocab_size;
  info.trained_context = spec.context_length;
  info.context = plan.context;
  const ExecutorInfo& executor = state.executor->info();
  info.backend = executor.backend;
  info.isa = executor.isa;
  info.kernels = executor.kernels;
  info.threads = executor.threads;
  info.adapters = state.adapters.info();
  info.weights_bytes = plan.weights_bytes;
  info.draft_tokens = options.speculation.enabled() ? options.speculation.draft_tokens : 0;
  return info;
}

}  // namespace

Model Model::load(const std::filesystem::path& path, const ModelOptions& options) {
  const auto report = [&options](double fraction) {
    if (options.progress) options.progress(fraction);
  };
  report(0);
  const Backend backend = find_backend(options.backend);
  auto state = std::make_unique<State>();
  state->file = gguf::File::open(path);
  report(0.2);
  state->decoder = read_decoder(*state->file);
  report(0.4);
  const DecoderSpec& spec = state->decoder.spec;

  state->adapters.load(options.adapters, state->decoder);
  MemoryPlanInput input =
      plan_input(options, backend, *state->file, state->decoder, state->adapters);
  std::unique_ptr<Drafter> drafter = make_drafter(options, *state->file, input.available);
  MemoryPlan plan = plan_memory(options, input);
  plan.executor.on_progress = [&](double fraction) { report(0.6 + 0.4 * fraction); };

  if (backend.reads_the_mapped_file()) {
    state->file->will_read_often([&](double fraction) { report(0.4 + 0.2 * fraction); });
  } else {
    state->file->will_need();
  }
  if (state->file->find("tokenizer.ggml.model") != nullptr) {
    state->tokenizer = load_tokenizer(*state->file);
  }
  report(0.6);
  state->executor = backend.make(state->decoder, plan.executor);
  state->info = describe(*state, plan, options);
  state->info.remarks = remarks_on(plan, options, spec);
  SchedulerOptions scheduling;
  scheduling.vocab_size = spec.vocab_size;
  scheduling.prefill_chunk = plan.executor.max_rows - plan.executor.max_logit_rows;
  scheduling.max_sequences = options.max_sequences;
  scheduling.window = spec.common_window();
  scheduling.dim = spec.dim;
  scheduling.longest_step = options.longest_step;
  scheduling.draft_tokens = options.speculation.draft_tokens;
  scheduling.adaptive_drafts = options.speculation.adaptive;
  scheduling.lookup = options.speculation.lookup;
  state->scheduler = std::make_shared<Scheduler>(*state->executor, scheduling, std::move(drafter));
  report(1);
  return Model(std::move(state));
}

}  // namespace edgerunner
