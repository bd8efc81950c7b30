#include "backend/cuda/buffers.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "backend/cuda/few_rows.h"

namespace edgerunner::cuda {
namespace {

std::size_t value_bytes(KvPrecision precision) {
  return precision == KvPrecision::q8 ? 1 : precision == KvPrecision::f16 ? 2 : 4;
}

// Scales of a layer's keys, or of its values.
std::size_t layer_scales(const LayerSpec& layer, const ExecutorOptions& options) {
  if (options.kv != KvPrecision::q8) return 0;
  return std::size_t{options.pages} * kPageTokens * layer.kv_heads;
}

// Bytes of a layer's keys, or of its values.
std::size_t layer_bytes(const LayerSpec& layer, const ExecutorOptions& options) {
  return std::size_t{options.pages} * kPageTokens * layer.kv_heads * layer.head_dim *
         value_bytes(options.kv);
}

// Values that are unpacked at once: gate and up, or q, k and v, or one matrix.
std::size_t most_weights(const Widths& w) {
  return std::size_t{w.dim} * std::max({2 * w.ffn, w.qkv_row, w.q_dim});
}

// Values that a row takes in f16 at most.
std::uint64_t widest_half(const Widths& w) {
  return std::max({w.dim, w.q_dim, w.ffn, w.expert_ffn});
}

// Of Scratch::branch: what blocks make is mostly added to the residual stream at once.
std::size_t branch_width(const DecoderSpec& spec) {
  const bool mixed = std::any_of(spec.layers.begin(), spec.layers.end(),
                                 [](const LayerSpec& layer) { return layer.mixture.count > 0; });
  return mixed || spec.post_norms || spec.residual_scale != 1 ? spec.dim : 0;
}

// Of the longest sequence, in any layer.
std::uint32_t parts_of(const DecoderSpec& spec, const ExecutorOptions& options) {
  return most_parts(attention_cut(spec).part_pages, options.max_context);
}

// Rows, query heads and parts that attention in parts keeps, at most.
std::size_t part_slots(const DecoderSpec& spec, const ExecutorOptions& options) {
  std::uint32_t heads = 0;
  for (const LayerSpec& layer : spec.layers) heads = std::max(heads, layer.heads);
  return std::size_t{std::min(options.max_rows, kFewAttentionRows)} * heads *
         parts_of(spec, options);
}

std::uint32_t widest_head(const DecoderSpec& spec) {
  std::uint32_t dim = 0;
  for (const LayerSpec& layer : spec.layers) dim = std::max(dim, layer.head_dim);
  return dim;
}

std::size_t pages_per_sequence(const ExecutorOptions& options) {
  return pages_for(options.max_context);
}

// What passes of many rows and of few keep between kernels, never both.
std::size_t work_bytes(const Widths& w, const ExecutorOptions& options) {
  const std::uint32_t rows = std::min(options.max_rows, most_few_rows());
  const std::uint64_t parts = std::max(
      partial_floats(rows, std::max({w.dim, w.qkv_row, 2 * w.ffn})),
      partial_floats(std::min(rows, options.max_logit_rows), std::min(w.vocab, kMostOutputs)));
  return std::max<std::size_t>(most_weights(w) * sizeof(__half), parts * sizeof(float));
}

// Words before the arrays of a batch's rows: parts, and the number of them in the first word of as
// many as keep parts aligned.
constexpr std::size_t kPartWords = sizeof(AttentionPart) / sizeof(std::uint32_t);
constexpr std::size_t kNumberWords = kPartWords;
std::size_t first_row_word(std::uint32_t max_rows) {
  return std::size_t{std::min(max_rows, kFewAttentionRows)} * kMostParts * kPartWords +
         kNumberWords;
}
std::uint32_t* part_number(std::uint32_t* rows) { return rows - kNumberWords; }
AttentionPart* parts_end(std::uint32_t* rows) {
  return reinterpret_cast<AttentionPart*>(rows - kNumberWords);
}

// The arrays of a batch's rows (BatchUpload::rows_array): a word a row each, two of the last.
constexpr std::uint32_t kPositions = 1;  // after the tokens
constexpr std::uint32_t kPageOffsets = 2;
constexpr std::uint32_t kLogitRows = 3;
constexpr std::uint32_t kTiles = 4;
constexpr std::uint32_t kRowWords = 6;

}  // namespace

Widths::Widths(const DecoderSpec& spec)
    : dim(spec.dim),
      pairs(static_cast<std::uint32_t>(spec.rope.inverse_frequencies.size())),
      vocab(spec.vocab_size) {
  for (const LayerSpec& layer : spec.layers) {
    const AttentionShape shape = attention_shape(layer);
    q_dim = std::max(q_dim, shape.q_dim());
    qkv_row = std::max(qkv_row, shape.row());
    const MixtureSpec& mixture = layer.mixture;
    ffn = std::max(ffn, mixture.count > 0 ? mixture.shared_ffn_dim : layer.ffn_dim);
    expert_ffn = std::max(expert_ffn, mixture.used * mixture.ffn_dim);
    most_used = std::max(most_used, mixture.used);
  }
}

Scratch::Scratch(const DecoderSpec& spec, const ExecutorOptions& options) : mixture(spec, options) {
  const Widths w(spec);
  const auto rows = [&](std::size_t width) {
    return DeviceBuffer(options.max_rows * width * sizeof(float));
  };
  x = rows(w.dim);
  normed = rows(w.dim);
  qkv = rows(w.qkv_row);
  attended = rows(w.q_dim);
  gate = rows(std::max(w.ffn, w.expert_ffn));
  up = rows(std::max(w.ffn, w.expert_ffn));
  branch = rows(branch_width(spec));
  logits = DeviceBuffer(std::size_t{options.max_logit_rows} * w.vocab * sizeof(float));
}

std::uint64_t Scratch::bytes(const DecoderSpec& spec, const ExecutorOptions& options) {
  const Widths w(spec);
  const std::uint64_t row = 2 * std::uint64_t{w.dim} + w.qkv_row + w.q_dim +
                            2 * std::uint64_t{std::max(w.ffn, w.expert_ffn)} + branch_width(spec);
  return MixtureScratch::bytes(spec, options) +
         sizeof(float) * (options.max_rows * row + std::uint64_t{options.max_logit_rows} * w.vocab);
}

HalfScratch::HalfScratch(const DecoderSpec& spec, const ExecutorOptions& options) {
  const Widths widths(spec);
  x = DeviceBuffer(options.max_rows * widest_half(widths) * sizeof(__half));
  scale = DeviceBuffer(options.max_rows * std::max(1U, widths.most_used) * sizeof(float));
  weight_values = most_weights(widths);
  work = DeviceBuffer(work_bytes(widths, options));
  const std::size_t slots = part_slots(spec, options);
  part_count = parts_of(spec, options);
  part_sums = DeviceBuffer(slots * widest_head(spec) * sizeof(float));
  part_stats = DeviceBuffer(slots * sizeof(float2));
  part_arrivals = DeviceBuffer(slots / part_count * sizeof(std::uint32_t));
  check(cudaMemset(part_arrivals.as<void>(), 0, part_arrivals.size()), "clearing counters");
  check(cudaDeviceSynchronize(), "clearing counters");
}

std::uint64_t HalfScratch::bytes(const DecoderSpec& spec, const ExecutorOptions& options) {
  const Widths w(spec);
  return options.max_rows * (widest_half(w) * sizeof(__half) +
                             std::uint64_t{std::max(1U, w.most_used)} * sizeof(float)) +
         work_bytes(w, options) +
         part_slots(spec, options) * (widest_head(spec) * sizeof(float) + sizeof(float2)) +
         part_slots(spec, options) / parts_of(spec, options) * sizeof(std::uint32_t);
}

bool HalfScratch::supports(const DecoderSpec& spec) {
  if (spec.dim % 8 != 0) return false;
  return std::all_of(spec.layers.begin(), spec.layers.end(), [](const LayerSpec& layer) {
    const MixtureSpec& mixture = layer.mixture;
    const bool network = mixture.count > 0
                             ? mixture.ffn_dim % 8 == 0 && mixture.shared_ffn_dim % 8 == 0
                             : layer.ffn_dim % 8 == 0;
    return network && layer.heads * layer.head_dim % 8 == 0;
  });
}

CachePool::CachePool(const DecoderSpec& spec, const ExecutorOptions& options)
    : memory_(bytes(spec, options)) {
  auto* at = memory_.as<std::byte>();
  for (const LayerSpec& layer : spec.layers) {
    const std::size_t size = layer_bytes(layer, options);
    const std::size_t scales = layer_scales(layer, options);
    auto* const first_scale = reinterpret_cast<float*>(at + 2 * size);
    layers_.push_back({at, at + size, options.kv, scales == 0 ? nullptr : first_scale,
                       scales == 0 ? nullptr : first_scale + scales});
    at += 2 * (size + scales * sizeof(float));
  }
}

std::uint64_t CachePool::bytes(const DecoderSpec& spec, const ExecutorOptions& options) {
  std::uint64_t total = 0;
  for (const LayerSpec& layer : spec.layers) {
    total += 2 * (layer_bytes(layer, options) + layer_scales(layer, options) * sizeof(float));
  }
  return total;
}

BatchUpload::BatchUpload(const ExecutorOptions& options, const AttentionCut& cut)
    : max_rows_(options.max_rows), cut_(cut), host_(bytes(options)), device_(bytes(options)) {}

std::uint64_t BatchUpload::bytes(const ExecutorOptions& options) {
  return (first_row_word(options.max_rows) +
          options.max_rows * (kRowWords + pages_per_sequence(options))) *
         sizeof(std::uint32_t);
}

std::size_t BatchUpload::rows_at() const { return first_row_word(max_rows_); }

std::uint32_t* BatchUpload::rows_array(std::uint32_t index) const {
  return device_.as<std::uint32_t>() + rows_at() + std::size_t{index} * rows_;
}

DeviceBatch BatchUpload::upload(const Batch& batch, cudaStream_t stream, std::uint32_t further) {
  rows_ = static_cast<std::uint32_t>(batch.tokens.size());
  auto* const host = host_.as<std::uint32_t>() + rows_at();
  std::uint32_t* const row_positions = host + kPositions * rows_;
  std::uint32_t* const page_offsets = host + kPageOffsets * rows_;
  auto* const tiles = reinterpret_cast<RowTile*>(host + kTiles * rows_);
  std::uint32_t* const pages = host + kRowWords * rows_;
  std::memcpy(host, batch.tokens.data(), batch.tokens.size_bytes());
  std::copy(batch.logit_rows.begin(), batch.logit_rows.end(), host + kLogitRows * rows_);
  std::uint32_t row = 0;
  std::uint32_t page_count = 0;
  tile_count_ = 0;
  for (const SequenceSlice& slice : batch.sequences) {
    for (std::uint32_t i = 0; i < slice.rows; i += cut_.tile_rows) {
      tiles[tile_count_++] = {row + i, std::min(cut_.tile_rows, slice.rows - i)};
    }
    for (std::uint32_t i = 0; i < slice.rows; ++i, ++row) {
      row_positions[row] = slice.start + i;
      page_offsets[row] = page_count;
    }
    const std::uint32_t used = pages_for(slice.start + slice.rows + further);
    std::copy_n(slice.pages.begin(), used, pages + page_count);
    page_count += used;
  }
  const bool few = rows_ <= kFewAttentionRows;
  const std::uint32_t parts =
      few ? write_parts(batch.sequences, cut_, further, parts_end(host)) : 0;
  *part_number(host) = parts;
  part_count_ = std::bit_ceil(parts);
  const std::size_t before = kNumberWords + parts * kPartWords;
  const std::size_t words = before + std::size_t{kRowWords} * rows_ + page_count;
  check(cudaMemcpyAsync(rows_array(0) - before, host - before, words * sizeof(std::uint32_t),
                        cudaMemcpyHostToDevice, stream),
        "uploading a batch");
  return {tokens(), positions(), rows_array(kPageOffsets), rows_array(kRowWords), rows_};
}

TokenId* BatchUpload::tokens() const { return reinterpret_cast<TokenId*>(rows_array(0)); }

std::uint32_t* BatchUpload::positions() const { return rows_array(kPositions); }

const std::uint32_t* BatchUpload::logit_rows() const { return rows_array(kLogitRows); }

const RowTile* BatchUpload::tiles() const {
  return reinterpret_cast<const RowTile*>(rows_array(kTiles));
}

AttentionPartList BatchUpload::parts() const {
  return {parts_end(rows_array(0)), part_number(rows_array(0)), cut_.part_pages};
}

AttentionShape attention_shape(const LayerSpec& layer) {
  return {layer.heads,          layer.kv_heads,        layer.head_dim,
          layer.sliding_window, layer.attention_scale, layer.attention_cap};
}

}  // namespace edgerunner::cuda
