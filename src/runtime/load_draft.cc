#include "runtime/load_draft.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "edgerunner/error.h"
#include "runtime/backend.h"
#include "runtime/memory_plan.h"
#include "runtime/model_drafter.h"

namespace edgerunner {
namespace {

constexpr std::string_view kAdvice = "a draft model must have the vocabulary of the model it helps";

[[noreturn]] void refuse(const gguf::File& draft, const std::string& why) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("draft model {}: {}; {}", draft.name(), why, kAdvice));
}

// The same token must have the same id in both. One may have more of them: vocabularies are padded.
void check_vocabulary(const gguf::File& draft, const gguf::File& target) {
  const char* const key = "tokenizer.ggml.tokens";
  const auto ours = draft.get_strings(key);
  const auto theirs = target.get_strings(key);
  if (!ours || !theirs) {
    refuse(draft, fmt::format("{} has no vocabulary to compare", ours ? target.name() : "it"));
  }
  const auto [mine, wanted] = std::mismatch(
      ours->begin(), ours->begin() + std::min(ours->size(), theirs->size()), theirs->begin());
  if (wanted == theirs->end() || mine == ours->end()) return;
  refuse(draft, fmt::format("its token {} is '{}', but that of {} is '{}'", mine - ours->begin(),
                            *mine, target.name(), *wanted));
}

MemoryPlan plan_draft(const ModelOptions& options, const DraftModel& model, const Backend& backend,
                      std::optional<std::uint64_t> available) {
  const DecoderSpec& spec = model.decoder.spec;
  ModelOptions wanted = options;
  wanted.speculation = {};
  wanted.context = std::min(options.context, spec.context_length);
  MemoryPlanInput input;
  input.weights_bytes = model.file->bytes();
  input.trained_context = spec.context_length;
  input.vocab_size = spec.vocab_size;
  input.available = available;
  input.need = [&](const ExecutorOptions& executor) { return backend.need(spec, executor); };
  try {
    return plan_memory(wanted, input);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("draft model {}: {}", model.file->name(), error.what()));
  }
}

}  // namespace

std::unique_ptr<Drafter> make_drafter(const ModelOptions& options, const gguf::File& target,
                                      std::optional<std::uint64_t>& available) {
  const SpeculationOptions& wanted = options.speculation;
  if (!wanted.enabled()) return nullptr;
  if (wanted.lookup && !wanted.draft_model.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "guesses come from lookup or from a draft model; choose one of the two");
  }
  if (options.backend == BackendKind::cuda) {
    throw Error(ErrorCode::unsupported,
                "speculative decoding doesn't run on the cuda backend, where the text would not be "
                "the same; use --backend cpu, or leave --speculate and --draft out");
  }
  if (wanted.draft_model.empty()) return nullptr;

  const Backend backend = find_backend(options.backend);
  auto model = std::make_unique<DraftModel>();
  model->file = gguf::File::open(wanted.draft_model);
  check_vocabulary(*model->file, target);
  model->decoder = read_decoder(*model->file);
  const MemoryPlan plan = plan_draft(options, *model, backend, available);
  const std::uint64_t taken = plan.weights_bytes + plan.cache_bytes + plan.scratch_bytes;
  if (available) *available -= std::min(*available, taken);
  model->file->will_read_often();
  model->executor = backend.make(model->decoder, plan.executor);
  const auto vocab_size = target.get_strings("tokenizer.ggml.tokens")->size();
  return std::make_unique<ModelDrafter>(std::move(model), static_cast<std::uint32_t>(vocab_size),
                                        wanted.draft_confidence);
}

}  // namespace edgerunner
