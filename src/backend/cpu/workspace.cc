#include "backend/cpu/workspace.h"

#include <algorithm>

#include "backend/cpu/plan.h"
#include "backend/cpu/vector_kernels.h"

namespace edgerunner::cpu {
namespace {

struct Widths {
  std::uint32_t q = 0;
  std::uint32_t kv = 0;
  std::uint32_t ffn = 0;
  std::uint32_t heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t heads_per_kv = 1;
  std::uint32_t experts = 0;
  std::uint32_t used = 0;
  bool branch = false;
};

Widths widths(const DecoderSpec& spec) {
  Widths w;
  for (const LayerSpec& layer : spec.layers) {
    w.q = std::max(w.q, layer.heads * layer.head_dim);
    w.kv = std::max(w.kv, layer.kv_heads * layer.head_dim);
    w.ffn = std::max(w.ffn, layer.ffn_dim);
    w.heads = std::max(w.heads, layer.heads);
    w.head_dim = std::max(w.head_dim, layer.head_dim);
    w.heads_per_kv = std::max(w.heads_per_kv, layer.heads / std::max(layer.kv_heads, 1U));
    w.ffn = std::max({w.ffn, layer.mixture.ffn_dim, layer.mixture.shared_ffn_dim});
    w.experts = std::max(w.experts, layer.mixture.count);
    w.used = std::max(w.used, layer.mixture.used);
  }
  w.branch = spec.residual_scale != 1 || spec.post_norms || w.experts > 0;
  return w;
}

class Cursor {
 public:
  explicit Cursor(std::byte* base) : base_(base) {}

  std::byte* bytes(std::size_t count) {
    std::byte* piece = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (count + 63) / 64 * 64;
    return piece;
  }
  template <class T>
  T* array(std::size_t count) {
    return reinterpret_cast<T*>(bytes(count * sizeof(T)));
  }
  float* floats(std::size_t count) { return array<float>(count); }
  Operand operand(std::size_t rows, std::uint32_t cols) {
    Operand result;
    for (std::size_t i = 0; i < kActivationFormats; ++i) {
      result.format[i] = bytes(rows * prepared_row_bytes(static_cast<ActivationFormat>(i), cols));
    }
    return result;
  }
  std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

MixtureSpace lay_out_mixture(Cursor& cursor, const Widths& w, std::size_t rows, std::size_t dim) {
  MixtureSpace space;
  space.scores = cursor.floats(rows * w.experts);
  space.share = cursor.floats(rows);
  space.choices = cursor.array<ExpertChoice>(rows * w.used);
  space.source_row = cursor.array<std::uint32_t>(rows * w.used);
  space.own_row = cursor.array<std::uint32_t>(rows * w.used);
  space.next_slot = cursor.array<std::uint32_t>(w.experts);
  space.groups = cursor.array<ExpertGroup>(w.experts);
  space.outputs = cursor.floats(rows * w.used * dim);
  return space;
}

}  // namespace

std::size_t lay_out(std::byte* base, const DecoderSpec& spec, const ExecutorOptions& options,
                    Workspace& workspace) {
  const Widths w = widths(spec);
  const std::size_t rows = options.max_rows;
  const std::uint32_t widest = std::max({spec.dim, w.q, w.ffn, options.adapter_floats});
  const std::uint32_t tile_rows = Plan::tile_tokens(spec) * w.heads_per_kv;
  const std::size_t record = attention_record_floats(w.head_dim);

  Cursor cursor(base);
  workspace.x = cursor.floats(rows * spec.dim);
  workspace.q = cursor.floats(rows * w.q);
  workspace.k = cursor.floats(rows * w.kv);
  workspace.v = cursor.floats(rows * w.kv);
  const std::size_t slots = rows * std::max(w.used, 1U);
  workspace.hidden = cursor.floats(slots * w.ffn);
  if (w.branch) workspace.branch = cursor.floats(rows * spec.dim);
  workspace.operand = cursor.operand(slots, widest);
  if (w.experts > 0) workspace.mixture = lay_out_mixture(cursor, w, rows, spec.dim);
  if (options.adapter_floats > 0) {
    workspace.low = cursor.floats(rows * kMostUpdates * options.adapter_floats);
    workspace.up = cursor.floats(rows * w.ffn);
  }
  workspace.records = cursor.floats(std::size_t{Plan::max_records(options)} * w.heads * record);
  workspace.workers.resize(static_cast<std::size_t>(std::max(options.threads, 1)));
  for (WorkerBuffers& worker : workspace.workers) {
    worker.row = cursor.floats(std::max(spec.dim, w.ffn));
    for (std::byte*& format : worker.operand.format) format = cursor.bytes(kOwnOperandBytes);
    worker.multiply = cursor.bytes(multiply_scratch_bytes(widest));
    worker.attention = cursor.bytes(attention_scratch_bytes(w.head_dim, tile_rows));
    worker.queries = cursor.floats(std::size_t{tile_rows} * w.head_dim);
    for (float*& records : worker.records) records = cursor.floats(tile_rows * record);
    worker.head = cursor.floats(w.head_dim);
    worker.keys = cursor.floats(std::size_t{kPageTokens} * w.head_dim);
  }
  return cursor.used();
}

}  // namespace edgerunner::cpu
