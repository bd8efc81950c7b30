#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "arch/decoder.h"
#include "arch/random_tensors.h"
#include "backend/executor.h"
#include "cli/options.h"
#include "gguf/file.h"
#include "runtime/adapter_shelf.h"
#include "runtime/backend.h"

namespace edgerunner::cli {

// A model with an executor and nothing around it: no sessions, no reuse of prefixes. For commands
// that need every row of logits, or must compute everything that they measure.
class BareModel {
 public:
  // Reads the file, or lays out the shape; cheap, so that a command can check its options against
  // the model. Throws UsageError unless exactly one of the two is given.
  explicit BareModel(const ModelArguments& arguments);

  const Decoder& decoder() const { return decoder_; }
  const DecoderSpec& spec() const { return decoder_.spec; }
  std::uint32_t context() const { return context_; }  // the most tokens of a sequence
  // Null where the model is a shape with random weights.
  const gguf::File* file() const { return file_ ? &*file_ : nullptr; }
  const ModelOptions& options() const { return options_; }
  // That apply to every sequence; null: none.
  const AdapterSet* adapters() const { return adapters_.get(); }

  // Makes the executor, with a cache for `sequences` sequences of `tokens` tokens. Throws
  // Error(context_full) that states both numbers where the context is less. The weights of a shape
  // are made here: Error(out_of_memory) where they don't fit.
  Executor& start(std::uint32_t tokens, std::uint32_t max_logit_rows, std::uint32_t sequences = 1);

  // What a token takes in the cache of the executor that start() made.
  double cache_token_bytes() const;

 private:
  void make_weights(const ExecutorOptions& options);
  // As many rows of a pass as the backend likes and the tokens can fill, fewer (but no less than
  // 512) where memory is short.
  std::uint32_t chunk_for(const Backend& backend, ExecutorOptions options,
                          std::uint32_t tokens) const;

  ModelOptions options_;
  std::optional<gguf::File> file_;
  std::optional<RandomTensors> random_;
  Decoder decoder_;
  AdapterShelf shelf_;
  std::shared_ptr<const AdapterSet> adapters_;
  std::uint32_t context_ = 0;
  std::unique_ptr<Executor> executor_;
};

}  // namespace edgerunner::cli
