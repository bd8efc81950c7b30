#pragma once

#include <memory>
#include <optional>

#include "arch/decoder.h"
#include "backend/executor.h"
#include "constraint/make_constraint.h"
#include "edgerunner/model.h"
#include "gguf/file.h"
#include "runtime/adapter_shelf.h"
#include "runtime/scheduler.h"

namespace edgerunner {

// What a model owns. Later members use earlier ones.
struct Model::State {
  std::optional<gguf::File> file;  // absent in a model made of parts
  Decoder decoder;                 // views into `file`
  AdapterShelf adapters;
  std::unique_ptr<Tokenizer> tokenizer;  // null where the file has none
  std::unique_ptr<Executor> executor;
  SharedTrie trie;  // of the tokenizer, for structured output
  ModelInfo info;
  std::shared_ptr<Scheduler> scheduler;  // shared with sessions, which may outlive the model

  ~State() {
    if (scheduler) scheduler->stop();
  }
};

// What stands behind a model, for the layers of this library above the runtime.
Model::State& state_of(Model& model);

// A model of an executor and a tokenizer (which may be null): what Model::load makes of a file, and
// tests of their own parts. `info` says vocab_size and context.
Model make_model(std::unique_ptr<Executor> executor, std::unique_ptr<Tokenizer> tokenizer,
                 const ModelInfo& info, const SchedulerOptions& options,
                 std::unique_ptr<Drafter> drafter = nullptr);

}  // namespace edgerunner
