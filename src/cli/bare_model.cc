#include "cli/bare_model.h"

#include <fmt/core.h>

#include "base/cpu_features.h"
#include "edgerunner/error.h"
#include "runtime/backend.h"

namespace edgerunner::cli {

BareModel::BareModel(const ModelArguments& arguments)
    : options_(arguments.options()),
      file_(gguf::File::open(arguments.path)),
      decoder_(read_decoder(file_)) {
  const std::uint32_t trained = decoder_.spec.context_length;
  if (options_.context > trained) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--context {} is more than the {} tokens that {} was trained for",
                            options_.context, trained, arguments.path));
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
  options.max_rows = options_.prefill_chunk;
  options.max_logit_rows = max_logit_rows;
  options.max_context = pages_for(tokens) * kPageTokens;
  options.pages = pages_for(tokens) * sequences;
  executor_ = find_backend(options_.backend).make(decoder_, options);
  return *executor_;
}

}  // namespace edgerunner::cli
