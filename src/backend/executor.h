#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "arch/adapter_set.h"
#include "arch/decoder.h"
#include "backend/profilable.h"
#include "edgerunner/types.h"

namespace edgerunner {

// A page of the KV cache: room for kPageTokens consecutive positions of one sequence, in all
// layers.
using PageId = std::uint32_t;
inline constexpr PageId kNoPage = ~PageId{0};
inline constexpr std::uint32_t kPageTokens = 64;

// Pages that positions 0 to tokens - 1 take.
constexpr std::uint32_t pages_for(std::size_t tokens) {
  return static_cast<std::uint32_t>((tokens + kPageTokens - 1) / kPageTokens);
}

// Consecutive rows of a batch that belong to one sequence: positions start, start+1, ...
// pages[p / kPageTokens] holds position p; every page of the rows' positions and of those that they
// may attend to must be there (kNoPage only where the sliding window of every layer has passed).
struct SequenceSlice {
  std::uint32_t rows = 0;
  std::uint32_t start = 0;
  std::span<const PageId> pages;
  const AdapterSet* adapters = nullptr;  // null: the model as it is
};

// One forward pass. Prefill, decode, prefix reuse and continuous batching are all just batches.
struct Batch {
  std::span<const TokenId> tokens;           // [rows], slice after slice
  std::span<const SequenceSlice> sequences;  // their rows add up to tokens.size()
  std::span<const std::uint32_t>
      logit_rows;  // ascending indices of the rows whose logits are wanted
};

struct ExecutorOptions {
  Precision precision = Precision::fast;
  KvPrecision kv = KvPrecision::f16;
  int threads = 1;
  std::uint32_t max_rows = 512;       // most rows in one batch
  std::uint32_t max_logit_rows = 64;  // most rows of one batch that may want logits
  std::uint32_t pages = 0;            // pages of the KV cache
  std::uint32_t max_context = 0;      // most positions of one sequence
  // adapter_floats() of the sets that sequences may have, at most; 0: none may.
  std::uint32_t adapter_floats = 0;
  // All adapters of those sets, which outlive the executor: for backends that bring them to memory
  // of their own.
  std::vector<const LoraAdapter*> adapters = {};
  // Called during construction alone, while weights are brought to where the backend wants them.
  std::function<void(double fraction)> on_progress = nullptr;
};

// What an executor is, for `info` and `bench`.
struct ExecutorInfo {
  std::string backend;               // "cpu"
  std::string isa;                   // "avx512", or "" where it means nothing
  std::vector<std::string> kernels;  // a line each: "Q4_1 prefill: ..."
  int threads = 1;
};

class TokenChooser;

// A loaded model, ready to run: owns the KV pages and all scratch, allocates nothing after
// construction. One forward pass at a time; the caller serialises. Keys and values of the batch's
// rows are written to the cache; the logits of a row depend on its sequence's tokens alone, to the
// bit, never on the rest of the batch or on how a prompt was cut into batches.
class Executor {
 public:
  virtual ~Executor() = default;

  // Writes the logits of batch.logit_rows to `logits`, [logit_rows, vocab_size].
  // Throws Error(invalid_argument) for a token, position, page or row that is out of range.
  virtual void forward(const Batch& batch, std::span<float> logits) = 0;

  // The same for a batch that wants no logits: writes the hidden states of all rows after the final
  // norm to `hidden`, [rows, dim]. Throws Error(unsupported) where the backend can't.
  virtual void embed(const Batch& batch, std::span<float> hidden);

  // Copies the keys and values of the first `tokens` positions of a page (copy-on-write).
  virtual void copy_page(PageId from, PageId to, std::uint32_t tokens) = 0;

  virtual const ExecutorInfo& info() const = 0;
  virtual const ExecutorOptions& options() const = 0;

  // How to see where its time goes; null where the backend has no timers.
  virtual Profilable* profilable() { return nullptr; }

  // How to have tokens chosen where the logits are; null where the caller chooses.
  virtual TokenChooser* chooser() { return nullptr; }
};

// Bytes that an executor will allocate, computed without allocating, for the check before loading.
struct MemoryNeed {
  std::uint64_t cache_bytes = 0;
  std::uint64_t scratch_bytes = 0;
};

// `decoder` must outlive the executor.
std::unique_ptr<Executor> make_reference_executor(const Decoder& decoder,
                                                  const ExecutorOptions& options);
std::unique_ptr<Executor> make_cpu_executor(const Decoder& decoder, const ExecutorOptions& options);
MemoryNeed reference_memory_need(const DecoderSpec& spec, const ExecutorOptions& options);
MemoryNeed cpu_memory_need(const DecoderSpec& spec, const ExecutorOptions& options);

// The `cuda` backend throws Error(unsupported) in a build without it, and Error(device) where there
// is no GPU. Its memory is the device's, where the weights are copied too; for matrices without
// data (arch/shape.h) it makes random weights there.
bool cuda_available();
std::unique_ptr<Executor> make_cuda_executor(const Decoder& decoder,
                                             const ExecutorOptions& options);
MemoryNeed cuda_memory_need(const DecoderSpec& spec, const ExecutorOptions& options);
std::uint64_t cuda_weight_bytes(const Decoder& decoder);
// Bytes of the device that are free, less what the driver takes for code and stacks.
std::optional<std::uint64_t> cuda_available_memory();

// What make_cpu_executor would make, told without making it or touching the weights.
ExecutorInfo cpu_executor_info(const Decoder& decoder, const ExecutorOptions& options);

// Throws Error(invalid_argument) naming what is wrong with a batch; shared by all backends.
void check_batch(const Batch& batch, const DecoderSpec& spec, const ExecutorOptions& options,
                 std::size_t logits_size);

}  // namespace edgerunner
