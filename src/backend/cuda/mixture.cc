#include "backend/cuda/mixture.h"

#include <algorithm>

#include "backend/cuda/pass_context.h"

namespace edgerunner::cuda {
namespace {

// Rows that are few for their experts: tiles are small, or most of each would be empty.
constexpr std::uint32_t kFewRows = 64;

std::uint32_t half_tile_rows(std::uint32_t rows) {
  return rows <= kFewRows ? kFewExpertRows : kManyExpertRows;
}

// Chooses each row's experts.
void choose(const PassContext& c, std::size_t layer, std::uint32_t rows, cudaStream_t stream) {
  const MixtureSpec& spec = c.spec.layers[layer].mixture;
  const DeviceMixture& w = c.weights.mixtures()[layer];
  const MixtureScratch& space = c.scratch.mixture;
  const float* const normed = c.scratch.normed.as<float>();
  const auto score = [&](const DeviceMatrix& router, std::uint32_t count, float* scores) {
    if (c.half != nullptr && rows <= kFewRows) {
      launch_route_few(router, normed, rows, scores, stream);
    } else {
      launch_matmul_f32(router, {normed, c.spec.dim, scores, count, nullptr, rows, false}, stream);
    }
  };
  score(w.router, spec.count, space.scores);
  if (spec.shared_ffn_dim > 0) score(w.shared_router, 1, space.share);
  launch_choose_experts(spec, space.scores, rows, space.rows, stream);
}

// Chooses and groups; the product that all three matrices of the experts share.
ExpertProduct route(const PassContext& c, std::size_t layer, std::uint32_t rows,
                    std::uint32_t tile_rows, cudaStream_t stream) {
  const MixtureSpec& spec = c.spec.layers[layer].mixture;
  const MixtureScratch& space = c.scratch.mixture;
  choose(c, layer, rows, stream);
  launch_group_by_expert(spec, rows, tile_rows, space.rows, stream);
  ExpertProduct product;
  product.tiles = space.rows.tiles;
  product.tile_count = space.rows.tile_count;
  product.most_tiles = most_tiles(rows * spec.used, spec.count, tile_rows);
  product.tile_rows = tile_rows;
  return product;
}

// The three products with the experts' matrices, and what follows them: multiply(product) of the
// rows by source, twice or, where `joins`, both at once; activate(); multiply(product) of the
// slots.
template <typename Multiply, typename Activate>
void mix(const PassContext& c, std::size_t layer, std::uint32_t rows, ExpertProduct product,
         bool joins, const Multiply& multiply, const Activate& activate, cudaStream_t stream) {
  const MixtureSpec& spec = c.spec.layers[layer].mixture;
  const DeviceMixture& w = c.weights.mixtures()[layer];
  const MixtureScratch& space = c.scratch.mixture;
  product.sources = space.rows.sources;
  product.outputs = spec.ffn_dim;
  product.w = w.gate;
  product.y = c.scratch.gate.as<float>();
  if (joins) {
    product.also_w = w.up;
    product.also_y = c.scratch.up.as<float>();
    multiply(product);
    product.also_y = nullptr;
  } else {
    multiply(product);
    product.w = w.up;
    product.y = c.scratch.up.as<float>();
    multiply(product);
  }
  activate(rows * spec.used, spec.ffn_dim);
  c.timer.lap(Operation::gate_up, stream);
  product.sources = nullptr;
  product.outputs = c.spec.dim;
  product.w = w.down;
  product.y = space.outputs;
  multiply(product);
  launch_combine_experts(spec, space.rows, space.outputs,
                         spec.shared_ffn_dim > 0 ? space.share : nullptr, rows, c.spec.dim,
                         c.scratch.branch.as<float>(), stream);
}

// The experts of one row.
void mix_row(const PassContext& c, std::size_t layer, cudaStream_t stream) {
  const MixtureSpec& spec = c.spec.layers[layer].mixture;
  const DeviceMixture& w = c.weights.mixtures()[layer];
  const MixtureScratch& space = c.scratch.mixture;
  choose(c, layer, 1, stream);
  const RowExperts experts{w.gate,    w.up,        w.down, space.rows.experts, space.rows.weights,
                           spec.used, spec.ffn_dim};
  float* const hidden = c.scratch.gate.as<float>();
  launch_row_experts_hidden(experts, c.spec.activation, c.scratch.normed.as<float>(), hidden,
                            stream);
  c.timer.lap(Operation::gate_up, stream);
  launch_row_experts_down(experts, hidden, spec.shared_ffn_dim > 0 ? space.share : nullptr,
                          c.spec.dim, c.scratch.branch.as<float>(), stream);
}

}  // namespace

MixtureScratch::Layout::Layout(const DecoderSpec& spec, const ExecutorOptions& options) {
  std::size_t most_slots = 0;
  std::size_t most_experts = 0;
  for (const LayerSpec& layer : spec.layers) {
    most_slots = std::max(most_slots, std::size_t{options.max_rows} * layer.mixture.used);
    most_experts = std::max<std::size_t>(most_experts, layer.mixture.count);
  }
  const std::size_t most_rows = most_experts == 0 ? 0 : options.max_rows;
  std::size_t at = 0;
  const auto take = [&](std::size_t bytes) {
    constexpr std::size_t kAlignment = 256;
    const std::size_t begin = at;
    at += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return begin;
  };
  experts = take(most_slots * sizeof(std::uint32_t));
  weights = take(most_slots * sizeof(float));
  slots = take(most_slots * sizeof(std::uint32_t));
  sources = take(most_slots * sizeof(std::uint32_t));
  tiles = take(most_slots * sizeof(ExpertTile));  // as many as there are slots at most
  tile_count = take(most_rows == 0 ? 0 : sizeof(std::uint32_t));
  scores = take(most_rows * most_experts * sizeof(float));
  share = take(most_rows * sizeof(float));
  outputs = take(most_slots * spec.dim * sizeof(float));
  total = at;
}

MixtureScratch::MixtureScratch(const DecoderSpec& spec, const ExecutorOptions& options)
    : memory_(bytes(spec, options)) {
  const Layout layout(spec, options);
  const auto array = [&]<typename T>(T*& pointer, std::size_t at) {
    pointer = reinterpret_cast<T*>(memory_.as<std::byte>() + at);
  };
  if (layout.total == 0) return;
  array(rows.experts, layout.experts);
  array(rows.weights, layout.weights);
  array(rows.slots, layout.slots);
  array(rows.sources, layout.sources);
  array(rows.tiles, layout.tiles);
  array(rows.tile_count, layout.tile_count);
  array(scores, layout.scores);
  array(share, layout.share);
  array(outputs, layout.outputs);
}

std::uint64_t MixtureScratch::bytes(const DecoderSpec& spec, const ExecutorOptions& options) {
  return Layout(spec, options).total;
}

void mix_f32(const PassContext& c, std::size_t layer, std::uint32_t rows, cudaStream_t stream) {
  float* const gate = c.scratch.gate.as<float>();
  mix(
      c, layer, rows, route(c, layer, rows, rows == 1 ? 1 : kExpertRowsF32, stream), false,
      [&](const ExpertProduct& product) {
        const bool of_rows = product.sources != nullptr;
        launch_experts_f32(product, of_rows ? c.scratch.normed.as<float>() : gate, stream);
      },
      [&](std::uint32_t slots, std::uint32_t ffn) {
        launch_activate(c.spec.activation, gate, c.scratch.up.as<float>(),
                        std::uint64_t{slots} * ffn, stream);
      },
      stream);
}

void mix_half(const PassContext& c, std::size_t layer, std::uint32_t rows, cudaStream_t stream) {
  const DeviceMixture& w = c.weights.mixtures()[layer];
  const bool alike = w.gate.type == w.up.type;
  if (rows == 1 && alike) return mix_row(c, layer, stream);
  const HalfRows half = c.half->rows();
  mix(
      c, layer, rows, route(c, layer, rows, half_tile_rows(rows), stream), alike,
      [&](const ExpertProduct& product) { launch_experts_half(product, half, stream); },
      [&](std::uint32_t slots, std::uint32_t ffn) {
        launch_activate_to_half(c.spec.activation, c.scratch.gate.as<float>(),
                                c.scratch.up.as<float>(), slots, ffn, half, stream);
      },
      stream);
}

}  // namespace edgerunner::cuda
