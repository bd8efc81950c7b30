#include "backend/cuda/decode_plan.h"

#include <algorithm>
#include <bit>

namespace edgerunner::cuda {
namespace {

constexpr std::uint32_t kHopper = 9;  // major compute capability: bulk copies, mbarriers
// Steps of a vector that a thread keeps in registers while it is normalised (decode_kernel.cuh).
constexpr std::uint32_t kWidestNorm = 8192;
constexpr std::uint32_t kTablePages = 512;  // 32,768 positions; longer tables are read from L2

// Stages of a ring that are on their way at once. What is asked for beyond what keeps the memory
// busy delays whatever else a block waits for: vectors, keys and values. Two are best for wide
// models; narrow ones, whose rows are a segment or less, need another to keep busy
// (docs/performance-cuda.md).
constexpr std::uint32_t kInFlight = 2;
constexpr std::uint32_t kInFlightNarrow = 3;
constexpr std::uint32_t kNarrow = 2048;  // columns
// Fewest tokens of a part that a sequence's keys are cut into. It depends on nothing, so a row's
// result depends on its own position alone.
constexpr std::uint32_t kSplitTokens = 64;

StreamMatrix stream_matrix(const DeviceMatrix& matrix) {
  return {matrix.data, matrix.rows, matrix.row_bytes, segment_bytes(layout(matrix.type)), 0};
}

std::uint32_t widest_stage(const DeviceMatrix& matrix) {
  return std::min(matrix.row_bytes, segment_bytes(layout(matrix.type)));
}

DecodeParameters shape_of(const DecoderSpec& spec, const ExecutorOptions& options) {
  const Widths widths(spec);
  DecodeParameters p;
  p.layer_count = static_cast<std::uint32_t>(spec.layers.size());
  p.dim = spec.dim;
  p.vocab = spec.vocab_size;
  p.pairs = widths.pairs;
  p.table_pages = std::min(kTablePages, pages_for(options.max_context));
  p.widest = std::max({widths.dim, widths.q_dim, widths.ffn});
  for (const LayerSpec& layer : spec.layers) {
    p.widest_group = std::max(p.widest_group, layer.heads / layer.kv_heads * layer.head_dim);
    p.widest_head = std::max(p.widest_head, layer.head_dim);
    p.scratch_heads = std::max({p.scratch_heads, 4U, std::min(8U, layer.heads / layer.kv_heads)});
    p.mma_head_dim =
        &layer == &spec.layers.front() || p.mma_head_dim == layer.head_dim ? layer.head_dim : 0;
  }
  // Halves of a head's pairs must be whole lanes of four, a power of two of them, apart.
  const bool rotates_in_registers = spec.rope.layout == RopeLayout::interleaved || p.pairs == 0 ||
                                    (p.pairs >= 4 && std::has_single_bit(p.pairs));
  if (options.kv != KvPrecision::f16 || !rotates_in_registers ||
      (p.mma_head_dim != 64 && p.mma_head_dim != 128)) {
    p.mma_head_dim = 0;
  }
  p.epsilon = spec.norm_epsilon;
  p.inverse_dim = 1.0F / static_cast<float>(spec.dim);
  p.rope_layout = spec.rope.layout;
  p.rope_magnitude = spec.rope.magnitude;
  return p;
}

}  // namespace

bool DecodePlan::supports(const DecoderSpec& spec, const ExecutorOptions& options,
                          const DeviceProperties& device) {
  if (options.kv == KvPrecision::q8 || device.major < static_cast<int>(kHopper) ||
      spec.dim % 32 != 0 || spec.dim > kWidestNorm) {
    return false;
  }
  // Every block must have a row of every matrix: see published.cuh.
  const auto blocks = static_cast<std::uint32_t>(device.multiprocessors);
  if (spec.dim < blocks || spec.vocab_size < blocks) return false;
  if (spec.dim > kResidualRows * kDecodeWarps * blocks) return false;
  for (const LayerSpec& layer : spec.layers) {
    if (layer.ffn_dim < blocks || attention_shape(layer).row() < blocks) return false;
    if (layer.head_dim % 8 != 0 || layer.head_dim > 128 || layer.ffn_dim % 32 != 0 ||
        layer.heads * layer.head_dim % 32 != 0 || layer.heads / layer.kv_heads > kDecodeWarps - 2 ||
        layer.kv_heads > blocks) {
      return false;
    }
  }
  // Room for two stages of the longest segment in every warp's ring.
  constexpr std::uint32_t kLongestSegment = 2560;
  return decode_shared_map(shape_of(spec, options)).ring + 2 * kDecodeWarps * kLongestSegment <=
         device.shared_bytes_per_block;
}

DecodePlan::DecodePlan(const DecoderSpec& spec, const ExecutorOptions& options,
                       const DeviceProperties& device, const DeviceWeights& weights,
                       const CachePool& cache, const double* inverse_frequencies)
    : parameters_(shape_of(spec, options)),
      blocks_(static_cast<std::uint32_t>(device.multiprocessors)),
      kv_(options.kv) {
  std::vector<DecodeLayer> layers;
  std::vector<StreamMatrix> matrices;
  std::uint32_t stage = widest_stage(weights.head());
  std::size_t partial_values = 0;
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    const DeviceLayer& w = weights.layers()[i];
    const AttentionShape shape = attention_shape(spec.layers[i]);
    layers.push_back({w, shape, cache.layer(i), spec.layers[i].ffn_dim});
    for (const DeviceMatrix* matrix : {&w.q, &w.k, &w.v, &w.o, &w.gate, &w.up, &w.down}) {
      matrices.push_back(stream_matrix(*matrix));
      parameters_.type_mask |= type_bit(matrix->type);
      stage = std::max(stage, widest_stage(*matrix));
      stream_bytes_ += std::uint64_t{matrix->rows} * matrix->row_bytes;
    }
    partial_values = std::max(partial_values, std::size_t{blocks_} * shape.heads / shape.kv_heads *
                                                  (shape.head_dim + std::size_t{2}));
  }
  matrices.push_back(stream_matrix(weights.head()));
  parameters_.type_mask |= type_bit(weights.head().type);
  stream_bytes_ += std::uint64_t{weights.head().rows} * weights.head().row_bytes;

  const auto upload = [](DeviceBuffer& to, const auto& from) {
    const std::size_t bytes = from.size() * sizeof(from[0]);
    to = DeviceBuffer(bytes);
    check(cudaMemcpy(to.as<void>(), from.data(), bytes, cudaMemcpyHostToDevice),
          "uploading the decode plan");
  };
  upload(layers_, layers);
  upload(matrices_, matrices);

  const Widths widths(spec);
  const std::size_t floats = 2 * std::size_t{widths.dim} + 2 * std::size_t{widths.qkv_row} +
                             widths.q_dim + widths.ffn + 2 * partial_values +
                             4 * std::size_t{blocks_} + 1 + 9 * 64;
  state_ = DeviceBuffer(floats * sizeof(float));
  check(cudaMemset(state_.as<void>(), 0, state_.size()), "clearing the decode state");
  auto* at = state_.as<float>();
  const auto take = [&](std::size_t count) {
    float* const result = at;
    at += (count + 63) / 64 * 64;
    return static_cast<void*>(result);
  };
  DecodeParameters& p = parameters_;
  p.layers = layers_.as<DecodeLayer>();
  p.matrices = matrices_.as<StreamMatrix>();
  p.inverse_frequencies = inverse_frequencies;
  p.embedding = weights.embedding();
  p.head = weights.head();
  p.output_norm = weights.output_norm();
  p.x = static_cast<std::uint32_t*>(take(widths.dim));
  p.x_middle = static_cast<std::uint32_t*>(take(widths.dim));
  p.qkv = static_cast<std::uint64_t*>(take(2 * std::size_t{widths.qkv_row}));
  p.attended = static_cast<std::uint32_t*>(take(widths.q_dim));
  p.hidden = static_cast<std::uint32_t*>(take(widths.ffn));
  p.best = static_cast<std::uint64_t*>(take(4 * std::size_t{blocks_}));
  p.partials = static_cast<std::uint64_t*>(take(2 * partial_values));
  p.next_tag = static_cast<unsigned*>(take(1));
  // Tag 0 is what cleared words carry.
  constexpr unsigned kFirstTag = 1;
  check(cudaMemcpy(p.next_tag, &kFirstTag, sizeof(kFirstTag), cudaMemcpyHostToDevice),
        "starting the decode state");
  p.stage_bytes = (stage + 127) / 128 * 128;
  const auto room =
      static_cast<std::uint32_t>(device.shared_bytes_per_block) - decode_shared_map(p).ring;
  // Two barriers a stage. More than twelve stages hide nothing more.
  const std::uint32_t stage_and_barriers = p.stage_bytes + 2 * std::uint32_t{sizeof(std::uint64_t)};
  p.stages = std::min<std::uint32_t>(12, room / (kDecodeWarps * stage_and_barriers));
  p.in_flight = std::min(p.dim <= kNarrow ? kInFlightNarrow : kInFlight, p.stages);
  p.split_tokens = kSplitTokens;
  p.map = decode_shared_map(p);
  shared_bytes_ = p.map.ring + p.stages * kDecodeWarps * stage_and_barriers;
}

void DecodePlan::launch(const DecodeIo& io, cudaStream_t stream) const {
  launch_decode(parameters_, io, {kv_, blocks_, shared_bytes_, stream});
  check(cudaGetLastError(), "starting the decode kernel");
}

}  // namespace edgerunner::cuda
