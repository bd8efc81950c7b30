#pragma once

#include <cstdint>
#include <memory>

#include "arch/decoder.h"
#include "backend/executor.h"
#include "cli/options.h"
#include "gguf/file.h"

namespace edgerunner::cli {

// A model with an executor and nothing around it: no sessions, no reuse of prefixes. For commands
// that need every row of logits, or must compute everything that they measure.
class BareModel {
 public:
  // Reads the file; cheap, so that a command can check its options against the model.
  explicit BareModel(const ModelArguments& arguments);

  const DecoderSpec& spec() const { return decoder_.spec; }
  std::uint32_t context() const { return context_; }  // the most tokens of a sequence
  std::uint64_t file_bytes() const { return file_.bytes(); }

  // Makes the executor, with a cache for `sequences` sequences of `tokens` tokens. Throws
  // Error(context_full) that states both numbers where the context is less.
  Executor& start(std::uint32_t tokens, std::uint32_t max_logit_rows, std::uint32_t sequences = 1);

 private:
  ModelOptions options_;
  gguf::File file_;
  Decoder decoder_;
  std::uint32_t context_ = 0;
  std::unique_ptr<Executor> executor_;
};

}  // namespace edgerunner::cli
