#include <algorithm>
#include <cmath>

#include "backend/cpu/forward_pass.h"

// The feed-forward part of a layer that is a mixture of experts: rows are grouped by expert, so
// that each chosen expert's weights are read once a batch, and the others' not at all.

namespace edgerunner::cpu {
namespace {

float sigmoid(float x) { return 1.0F / (1.0F + std::exp(-x)); }

// The experts of a row by descending router probability, of equals the first, and their weights.
void choose_experts(const MixtureSpec& spec, std::span<float> scores,
                    std::span<ExpertChoice> chosen) {
  const float peak = *std::max_element(scores.begin(), scores.end());
  float total = 0;
  for (float& score : scores) total += score = std::exp(score - peak);
  float kept = 0;
  for (ExpertChoice& choice : chosen) {
    const auto best = std::max_element(scores.begin(), scores.end());
    choice.expert = static_cast<std::uint32_t>(best - scores.begin());
    choice.weight = *best;
    kept += *best;
    *best = -1;
  }
  const float divisor = spec.normalised ? kept : total;
  for (ExpertChoice& choice : chosen) choice.weight /= divisor;
}

}  // namespace

void ForwardPass::mixture(std::size_t layer) {
  const MixtureSpec& spec = spec_.layers[layer].mixture;
  const FeedForwardWeights& feed_forward = weights_.layers[layer].feed_forward;
  const MixtureWeights& w = feed_forward.mixture;
  const Product router[] = {product(w.router, {}, space_.mixture.scores, Epilogue::store)};
  multiply(router, Operation::gate_up, {});
  if (spec.shared_ffn_dim > 0) shared_expert(w);
  group_by_expert(spec);

  const MixtureSpace& space = space_.mixture;
  const std::uint32_t slots = rows_->rows * spec.used;
  Preparation inner = preparation(space_.x, spec_.dim, {&w.gate, &w.up}, Operation::gate_up);
  inner.norm = feed_forward.norm;
  inner.sources = {space.source_row, slots};
  prepare(inner);
  if (context_.observer != nullptr) {
    show_groups(w.gate, spec.ffn_dim);
    show_groups(w.up, spec.ffn_dim);
  }
  multiply_groups(spec, spec.ffn_dim, [&](const ExpertGroup& group, const auto& run) {
    float* hidden = space_.hidden + std::size_t{group.first_slot} * spec.ffn_dim;
    run(w.gate, group, hidden, Epilogue::store);
    run(w.up, group, hidden, gated());
  });
  lap(Operation::gate_up);

  Preparation outer = preparation(space_.hidden, spec.ffn_dim, {&w.down}, Operation::down);
  outer.sources = {space.own_row, slots};
  prepare(outer);
  if (context_.observer != nullptr) show_groups(w.down, spec_.dim);
  multiply_groups(spec, spec_.dim, [&](const ExpertGroup& group, const auto& run) {
    run(w.down, group, space.outputs + std::size_t{group.first_slot} * spec_.dim, Epilogue::store);
  });
  worker_.for_each(rows_->rows, [&](std::uint32_t row) { combine(spec, row); });
  add_branch(feed_forward.post_norm, Operation::down, layer_operand(layer + 1));
}

void ForwardPass::shared_expert(const MixtureWeights& w) {
  const Product share[] = {product(w.shared_router, {}, space_.mixture.share, Epilogue::store)};
  multiply(share, Operation::gate_up, {});
  const Product gate = product(w.shared_gate, {}, space_.hidden, Epilogue::store);
  const Product gated[] = {gated_product(gate, w.shared_up, {})};
  multiply(gated, Operation::gate_up,
           preparation(space_.hidden, w.shared_down.cols, {&w.shared_down}, Operation::down));
  const Product down[] = {product(w.shared_down, {}, space_.branch, Epilogue::store)};
  multiply(down, Operation::down, {});
}

void ForwardPass::group_by_expert(const MixtureSpec& spec) {
  MixtureSpace& space = space_.mixture;
  worker_.for_each(rows_->rows, [&](std::uint32_t row) {
    choose_experts(spec, {space.scores + std::size_t{row} * spec.count, spec.count},
                   {space.choices + std::size_t{row} * spec.used, spec.used});
  });
  worker_.for_each(1, [&](std::uint32_t) {
    const std::uint32_t slots = rows_->rows * spec.used;
    std::fill_n(space.next_slot, spec.count, 0U);
    for (std::uint32_t i = 0; i < slots; ++i) ++space.next_slot[space.choices[i].expert];
    space.group_count = 0;
    std::uint32_t first = 0;
    for (std::uint32_t expert = 0; expert < spec.count; ++expert) {
      const std::uint32_t rows = space.next_slot[expert];
      space.next_slot[expert] = first;
      if (rows > 0) space.groups[space.group_count++] = {expert, first, rows};
      first += rows;
    }
    for (std::uint32_t i = 0; i < slots; ++i) {
      const std::uint32_t slot = space.next_slot[space.choices[i].expert]++;
      space.choices[i].slot = slot;
      space.source_row[slot] = i / spec.used;
      space.own_row[slot] = slot;
    }
  });
}

void ForwardPass::show_groups(const Matrix& experts, std::uint32_t rows) {
  worker_.for_each(1, [&](std::uint32_t) {
    for (std::uint32_t i = 0; i < space_.mixture.group_count; ++i) {
      const ExpertGroup& group = space_.mixture.groups[i];
      const Activations x = activations(experts);
      context_.observer->see(experts.row_range(group.expert * rows, rows), group.expert,
                             {x.data + std::size_t{group.first_slot} * x.row_stride, group.rows,
                              x.cols, x.row_stride});
    }
  });
}

template <class Body>
void ForwardPass::multiply_groups(const MixtureSpec& spec, std::uint32_t rows, const Body& body) {
  const MixtureSpace& space = space_.mixture;
  // How many there are is written by a loop, so that it is read inside of one.
  const std::uint32_t most_groups = std::min(rows_->rows * spec.used, spec.count);
  const std::uint32_t share = product_share(rows, most_groups);
  const std::uint32_t shares = (rows + share - 1) / share;
  worker_.for_each(most_groups * shares, [&](std::uint32_t unit) {
    if (unit / shares >= space.group_count) return;
    const std::uint32_t begin = unit % shares * share;
    const std::uint32_t end = std::min(begin + share, rows);
    body(space.groups[unit / shares],
         [&](const Matrix& experts, const ExpertGroup& group, float* out, Epilogue epilogue) {
           const Matrix expert = experts.row_range(group.expert * rows, rows);
           Product p = product(expert, {}, out, epilogue);
           p.x.rows = group.rows;
           p.x.data += std::size_t{group.first_slot} * p.x.row_stride;
           context_.kernels.multiply(p, begin, end, own_.multiply);
         });
  });
}

// The sum over a row's experts in the order of their rank, which the row alone decides.
void ForwardPass::combine(const MixtureSpec& spec, std::uint32_t row) {
  const MixtureSpace& space = space_.mixture;
  float* branch = space_.branch + std::size_t{row} * spec_.dim;
  const float share = spec.shared_ffn_dim > 0 ? sigmoid(space.share[row]) : 0.0F;
  for (std::uint32_t i = 0; i < spec_.dim; ++i) {
    branch[i] = spec.shared_ffn_dim > 0 ? share * branch[i] : 0.0F;
  }
  for (std::uint32_t rank = 0; rank < spec.used; ++rank) {
    const ExpertChoice& choice = space.choices[std::size_t{row} * spec.used + rank];
    const float* output = space.outputs + std::size_t{choice.slot} * spec_.dim;
    for (std::uint32_t i = 0; i < spec_.dim; ++i) branch[i] += choice.weight * output[i];
  }
}

}  // namespace edgerunner::cpu
