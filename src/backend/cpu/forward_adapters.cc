#include <algorithm>

#include "backend/cpu/forward_pass.h"
#include "tensor/dequantize.h"

// LoRA adapters: for the rows that have any, scale * B (A x) is added to what the weights gave.
// Their products are those of `exact` whatever the precision: they are small beside the weights.

namespace edgerunner::cpu {
namespace {

// Outputs of B that a thread computes at a time.
constexpr std::uint32_t kAdaptedOutputs = 16 * kRowTile;

constexpr std::uint32_t shares_of(std::uint32_t outputs) {
  return (outputs + kAdaptedOutputs - 1) / kAdaptedOutputs;
}

}  // namespace

bool ForwardPass::adapts(std::size_t layer, std::initializer_list<LoraTarget> targets) const {
  return std::any_of(rows_->adapted.begin(), rows_->adapted.end(), [&](const PlanAdapted& adapted) {
    return std::any_of(adapted.set->uses.begin(), adapted.set->uses.end(),
                       [&](const AdapterSet::Use& use) {
                         return std::any_of(targets.begin(), targets.end(), [&](LoraTarget target) {
                           return !use.adapter->update(layer, target).empty();
                         });
                       });
  });
}

Preparation ForwardPass::for_adapters(Preparation wanted, std::size_t layer,
                                      std::initializer_list<LoraTarget> targets) const {
  wanted.for_adapters = adapts(layer, targets);
  return wanted;
}

void ForwardPass::adapt(std::size_t layer, std::span<const Update> updates, Operation operation) {
  const bool changes = std::any_of(updates.begin(), updates.end(), [&](const Update& update) {
    return adapts(layer, {update.target});
  });
  if (!changes) return;
  const auto products = static_cast<std::uint32_t>(updates.size());
  const auto groups = static_cast<std::uint32_t>(rows_->adapted.size());
  worker_.for_each(groups * products, [&](std::uint32_t unit) {
    const std::uint32_t index = unit % products;
    adapt_down(layer, rows_->adapted[unit / products], updates[index], index);
  });
  std::uint32_t shares = 0;
  for (const Update& update : updates) shares += shares_of(update.width);
  worker_.for_each(groups * shares, [&](std::uint32_t unit) {
    std::uint32_t share = unit % shares;
    std::uint32_t index = 0;
    for (; share >= shares_of(updates[index].width); ++index) {
      share -= shares_of(updates[index].width);
    }
    adapt_up(layer, rows_->adapted[unit / shares], updates[index], index, share * kAdaptedOutputs);
  });
  lap(operation);
}

// What A gives is laid out as an operand of B, times the scale.
void ForwardPass::adapt_down(std::size_t layer, const PlanAdapted& rows, const Update& update,
                             std::uint32_t index) {
  const std::size_t floats = context_.adapter_floats;
  const std::size_t stride = kMostUpdates * floats;
  float* low = space_.low + rows.row * stride + index * floats;
  for (const AdapterSet::Use& use : rows.set->uses) {
    const LowRank& change = use.adapter->update(layer, update.target);
    const std::uint32_t width = adapter_floats(use.adapter->largest_rank());
    if (!change.empty()) {
      Product p;
      p.weights = &change.a;
      p.x = {ActivationFormat::f32, rows.rows, change.a.cols,
             operand().format[static_cast<std::size_t>(ActivationFormat::f32)],
             prepared_row_bytes(ActivationFormat::f32, change.a.cols)};
      p.x.data += rows.row * p.x.row_stride;
      p.out = low;
      p.out_stride = stride;
      context_.kernels.multiply(p, 0, change.rank(), own_.multiply);
      const float scale = change.scale * use.scale;
      for (std::uint32_t row = 0; row < rows.rows; ++row) {
        float* values = low + row * stride;
        for (std::uint32_t i = 0; i < change.rank(); ++i) values[i] *= scale;
        std::fill(values + change.rank(), values + width, 0.0F);
      }
    }
    low += width;
  }
}

void ForwardPass::adapt_up(std::size_t layer, const PlanAdapted& rows, const Update& update,
                           std::uint32_t index, std::uint32_t begin) {
  const std::size_t floats = context_.adapter_floats;
  const std::size_t stride = kMostUpdates * floats;
  const float* low = space_.low + rows.row * stride + index * floats;
  for (const AdapterSet::Use& use : rows.set->uses) {
    const LowRank& change = use.adapter->update(layer, update.target);
    if (!change.empty()) {
      Product p;
      p.weights = &change.b;
      p.x = {ActivationFormat::f32, rows.rows, change.rank(),
             reinterpret_cast<const std::byte*>(low), stride * sizeof(float)};
      p.out = update.out + std::size_t{rows.row} * update.width;
      p.out_stride = update.width;
      p.epilogue = Epilogue::add;
      context_.kernels.multiply(p, begin, std::min(begin + kAdaptedOutputs, update.width),
                                own_.multiply);
    }
    low += adapter_floats(use.adapter->largest_rank());
  }
}

// A token's row of A is an operand of B.
void ForwardPass::adapt_embedding(const AdapterSet& set, TokenId token, std::uint32_t row) {
  float* low = space_.low + std::size_t{row} * kMostUpdates * context_.adapter_floats;
  for (const AdapterSet::Use& use : set.uses) {
    const LowRank& change = use.adapter->embedding();
    if (change.empty()) continue;
    const std::uint32_t rank = change.a.cols;
    const std::size_t stride = row_bytes(change.a.type, rank);
    dequantize(change.a.type,
               change.a.data.subspan(static_cast<std::size_t>(token) * stride, stride),
               {low, rank});
    const float scale = change.scale * use.scale;
    for (std::uint32_t i = 0; i < rank; ++i) low[i] *= scale;
    std::fill(low + rank, low + adapter_floats(rank), 0.0F);
    Product p;
    p.weights = &change.b;
    p.x = {ActivationFormat::f32, 1, rank, reinterpret_cast<const std::byte*>(low),
           adapter_floats(rank) * sizeof(float)};
    p.out = space_.x + std::size_t{row} * spec_.dim;
    p.out_stride = spec_.dim;
    p.epilogue = Epilogue::add;
    context_.kernels.multiply(p, 0, spec_.dim, own_.multiply);
  }
}

}  // namespace edgerunner::cpu
