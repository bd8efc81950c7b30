#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "arch/decoder.h"
#include "backend/executor.h"
#include "gguf/file.h"
#include "runtime/drafter.h"
#include "runtime/kv_cache.h"
#include "runtime/sampler.h"

namespace edgerunner {

// A loaded model that guesses for another.
struct DraftModel {
  std::optional<gguf::File> file;  // absent in tests
  Decoder decoder;                 // views into `file`
  std::unique_ptr<Executor> executor;
};

// Has a smaller model write what comes next, by the sampling options and the draws of the sequence
// itself, so that it guesses what the larger one would draw where the two agree. All sequences go
// through its forward passes together. What it computed of guesses that turned out right is kept.
class ModelDrafter : public Drafter {
 public:
  // Guesses tokens under `vocab_size` alone, which is the other model's, and stops where the chance
  // that all guesses are right falls below `confidence`.
  ModelDrafter(std::unique_ptr<DraftModel> model, std::uint32_t vocab_size, double confidence);

  void draft(std::span<const DraftRequest> requests) override;
  void forget(std::uint64_t sequence) override;

 private:
  struct Place {
    KvCache::Sequence cache;     // of tokens that the sequence really has
    std::vector<TokenId> ahead;  // guesses computed behind them, not yet known to be right
    std::optional<Sampler> sampler;
  };

  // A sequence in the passes of one call.
  struct Active {
    const DraftRequest* request;
    Place* place;
    std::uint32_t rows;           // in the coming pass
    std::uint32_t wanted;         // guesses
    std::vector<TokenId> tokens;  // the sequence's, with the guesses so far
    double chance = 1;            // that these are right, as this model has it
  };

  void take_part(const DraftRequest& request, std::uint32_t& room);
  Place& place_of(const DraftRequest& request);
  void confirm(Place& place, std::span<const TokenId> tokens);
  void run();
  void guess(Active& active, std::span<float> logits);

  std::unique_ptr<DraftModel> model_;
  std::uint32_t vocab_size_;  // of the guesses
  double confidence_;
  KvCache cache_;
  std::unordered_map<std::uint64_t, Place> places_;
  std::vector<Active> active_;
  std::vector<TokenId> tokens_;
  std::vector<SequenceSlice> slices_;
  std::vector<std::uint32_t> logit_rows_;
  std::vector<float> logits_;     // [max_logit_rows, the draft model's vocabulary]
  std::vector<float> unchanged_;  // a row of them, before sampling
};

}  // namespace edgerunner
