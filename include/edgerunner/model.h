#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "edgerunner/adapter.h"
#include "edgerunner/generation.h"
#include "edgerunner/session.h"
#include "edgerunner/tokenizer.h"
#include "edgerunner/types.h"

namespace edgerunner {

// Speculative decoding: tokens are guessed ahead and checked together in one forward pass, which
// costs little more than a pass of one row. The text is what it is without, token for token: each
// token is chosen from the model's own logits as ever, and guesses only decide how many are chosen
// in a pass.
struct SpeculationOptions {
  // Guesses that what followed the last few tokens before follows them again: good for texts that
  // repeat their prompt, such as edited code or summaries.
  bool lookup = false;
  // Or a smaller model of the same vocabulary guesses. Empty: none.
  std::filesystem::path draft_model;
  // Or nothing guesses but for a generation that asks for it (GenerateOptions::guessing).
  bool on_request = false;

  std::uint32_t draft_tokens = 16;  // most that are guessed ahead, from 1 to 64
  bool adaptive = true;             // fewer, or none, where that is faster
  // A draft model stops where the chance that all its guesses are right, by its own account, falls
  // below this; from 0 (never) to 1.
  double draft_confidence = 0.2;

  bool enabled() const { return lookup || on_request || !draft_model.empty(); }
};

struct ModelOptions {
  BackendKind backend = BackendKind::cpu;
  Precision precision = Precision::fast;
  std::optional<KvPrecision> kv;  // unset: as the precision asks (default_kv)
  int threads = 0;  // 0: the cores that the process may use (affinity and cgroup quota)

  // Most tokens of one sequence; 0: what the model was trained for, at most 8192 and what memory
  // allows.
  std::uint32_t context = 0;

  // Most prompt tokens of one forward pass, of all sequences; 0: 512, and on cuda 4096 where there
  // is memory for it.
  std::uint32_t prefill_chunk = 0;
  std::uint32_t max_sequences = 8;  // that run at once; more wait their turn
  std::uint32_t cache_tokens = 0;   // of the KV cache, at least one context; 0: as is useful

  // What the prompts of others may add to the time between two tokens, by chunks that are cut to
  // it; 0: no bound.
  std::chrono::milliseconds longest_step{0};

  SpeculationOptions speculation;  // Error(unsupported) on cuda

  // LoRA adapters, numbered from 0. Errors name the file and tensor.
  std::vector<AdapterFile> adapters;

  std::uint64_t memory_limit = 0;  // bytes; 0: what the system has available

  std::function<void(double fraction)> progress;  // called while loading, from 0 to 1
};

// What a model is, for people and programs.
struct ModelInfo {
  std::string architecture;
  std::string name;
  std::string chat_template;  // its Jinja source; empty where the file has none
  std::uint64_t parameters = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t weights_bytes = 0;  // in memory: the file's, or a device's copy
  std::uint64_t cache_bytes = 0;    // of the KV cache; memory is taken as it fills
  std::uint64_t scratch_bytes = 0;
  std::uint32_t vocab_size = 0;
  std::uint32_t trained_context = 0;
  std::uint32_t context = 0;  // of one sequence, as loaded
  std::string backend;
  std::string isa;
  std::vector<std::string> kernels;
  std::vector<std::string> remarks;  // what a user should know, such as a shortened context
  std::uint32_t draft_tokens = 0;    // most guessed ahead; 0: there is no room for guesses
  std::vector<AdapterInfo> adapters;
  int threads = 1;
};

// A model, ready to generate. Weights stay in the mapped file. Cheap to move, not to be copied; all
// members may be called from any thread, on generations and sessions too that run at the same time:
// they are computed together, each as if it were alone, and share what they have in common in the
// KV cache. Destroying a model cancels what still runs; generations and sessions may outlive it.
class Model {
 public:
  // Throws Error: io, invalid_file, unsupported, invalid_argument naming an option, or
  // out_of_memory with the sum (weights, cache, scratch, available) and the context that would fit,
  // before any of it is allocated.
  static Model load(const std::filesystem::path& path, const ModelOptions& options = {});
  static std::future<Model> load_async(std::filesystem::path path, ModelOptions options = {});

  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  const Tokenizer& tokenizer() const;  // throws Error(unsupported) where the file has none
  const ModelInfo& info() const;

  // Starts a generation and returns it as a range of pieces of text. The prompt is encoded with BOS
  // as the metadata says, and control tokens in it are parsed; encode text that others wrote with
  // the tokenizer to decide that yourself. Throws Error(invalid_argument) naming what is out of
  // range, Error(context_full) for a prompt that is too long. `stop` cancels it.
  Generation generate(std::string_view prompt, const GenerateOptions& options = {},
                      std::stop_token stop = {});
  Generation generate(std::span<const TokenId> prompt, const GenerateOptions& options = {},
                      std::stop_token stop = {});

  // The same with a callback for each piece, called on this thread, which returns whether to go on
  // (false cancels); returns when the generation has ended. What the callback throws comes through.
  using PieceCallback = std::function<bool(std::string_view piece)>;
  Summary generate(std::string_view prompt, const PieceCallback& on_piece,
                   const GenerateOptions& options = {}, std::stop_token stop = {});
  Summary generate(std::span<const TokenId> prompt, const PieceCallback& on_piece,
                   const GenerateOptions& options = {}, std::stop_token stop = {});

  // `adapters`: as GenerateOptions::adapters.
  Session session(const std::optional<std::vector<AdapterScale>>& adapters = std::nullopt);

  // Ends every generation that runs or waits with FinishReason::cancelled, and calls of sessions
  // with Error(cancelled).
  void cancel_all();

  // Forgets cached prefixes that no generation uses and gives clean weight pages back to the
  // system.
  void trim_memory();

  struct State;
  explicit Model(std::unique_ptr<State> state);

 private:
  friend Model::State& state_of(Model& model);
  std::unique_ptr<State> state_;
};

}  // namespace edgerunner
