#include "cli/bare_model.h"

#include <fmt/core.h>

#include <algorithm>

#include "arch/shape.h"
#include "base/cpu_features.h"
#include "cli/output.h"
#include "cli/usage_error.h"
#include "edgerunner/error.h"
#include "runtime/memory_plan.h"

namespace edgerunner::cli {
namespace {

Decoder decoder_of_shape(const ModelArguments& arguments) {
  const auto type = element_type_from_name(arguments.type);
  if (!type || !traits(*type).supported) {
    throw UsageError(fmt::format("--type: '{}' is no element type that EdgeRunner computes with",
                                 arguments.type));
  }
  return shape_decoder(arguments.shape, *type);
}

}  // namespace

BareModel::BareModel(const ModelArguments& arguments) : options_(arguments.options()) {
  if (arguments.path.empty() == arguments.shape.empty()) {
    throw UsageError("give MODEL, or --shape for random weights, one of the two");
  }
  if (arguments.shape.empty()) {
    file_ = gguf::File::open(arguments.path);
    decoder_ = read_decoder(*file_);
    if (find_backend(options_.backend).reads_the_mapped_file()) {
      file_->will_read_often(loading_progress());
      clear_progress();
    } else {
      file_->will_need();
    }
  } else {
    if (!options_.adapters.empty()) {
      throw UsageError("--lora changes a model's file; give MODEL in place of --shape");
    }
    decoder_ = decoder_of_shape(arguments);
  }
  shelf_.load(options_.adapters, decoder_);
  adapters_ = shelf_.choose(std::nullopt);
  const std::uint32_t trained = decoder_.spec.context_length;
  if (options_.context > trained) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--context {} is more than the {} tokens that {} was trained for",
                            options_.context, trained, arguments.title()));
  }
  context_ = options_.context != 0 ? options_.context : trained;
  if (options_.threads == 0) options_.threads = available_cores();
}

Executor& BareModel::start(std::uint32_t tokens, std::uint32_t max_logit_rows,
                           std::uint32_t sequences) {
  if (tokens > context_) {
    throw Error(ErrorCode::context_full,
                fmt::format("{} tokens are more than the context of {} tokens", tokens, context_));
  }
  ExecutorOptions options;
  options.precision = options_.precision;
  options.kv = options_.kv.value_or(default_kv(options_.precision));
  options.threads = options_.threads;
  options.max_logit_rows = max_logit_rows;
  options.max_context = pages_for(tokens) * kPageTokens;
  options.pages = pages_for(tokens) * sequences;
  options.adapter_floats = shelf_.floats();
  options.adapters = shelf_.all();
  const Backend backend = find_backend(options_.backend);
  options.max_rows =
      options_.prefill_chunk != 0 ? options_.prefill_chunk : chunk_for(backend, options, tokens);
  if (!file_ && !random_) make_weights(options);
  options.on_progress = loading_progress();
  executor_ = backend.make(decoder_, options);
  return *executor_;
}

std::uint32_t BareModel::chunk_for(const Backend& backend, ExecutorOptions options,
                                   std::uint32_t tokens) const {
  constexpr std::uint32_t kLeast = 512;
  // Only a backend with memory of its own counts weights against what is available.
  const auto available = backend.weight_bytes == nullptr ? std::nullopt : backend.available();
  return fitting_chunk(
      std::min(backend.prefill_chunk, std::max(kLeast, tokens)), [&](std::uint32_t chunk) {
        if (!available) return true;
        options.max_rows = chunk;
        const MemoryNeed need = backend.need(decoder_.spec, options);
        return backend.weight_bytes(decoder_) + need.cache_bytes + need.scratch_bytes <= *available;
      });
}

void BareModel::make_weights(const ExecutorOptions& options) {
  const Backend backend = find_backend(options_.backend);
  if (backend.weight_bytes != nullptr) return;  // it makes them where it keeps them
  const MemoryNeed need = backend.need(decoder_.spec, options);
  const std::uint64_t weights = matrix_bytes(decoder_.weights);
  const std::uint64_t total = weights + need.cache_bytes + need.scratch_bytes;
  const auto available = backend.available();
  if (available && total > *available) {
    throw Error(
        ErrorCode::out_of_memory,
        fmt::format("random weights take {} MB, cache and scratch {} MB, but only {} MB of "
                    "memory are free; choose a smaller --shape or --type",
                    weights / 1'000'000, (total - weights) / 1'000'000, *available / 1'000'000));
  }
  show_progress(fmt::format("making {} MB of random weights ...", weights / 1'000'000));
  random_.emplace(decoder_.weights);
  clear_progress();
}

double BareModel::cache_token_bytes() const {
  ExecutorOptions options = executor_->options();
  options.pages = 1;
  const MemoryNeed need = find_backend(options_.backend).need(decoder_.spec, options);
  return static_cast<double>(need.cache_bytes) / kPageTokens;
}

}  // namespace edgerunner::cli
