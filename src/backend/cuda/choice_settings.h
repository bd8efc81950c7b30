#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cuda/choice_steps.h"
#include "backend/token_chooser.h"

namespace edgerunner::cuda {

// Whether the device chooses by these options: no more biases than it has room for.
inline bool can_choose_by(const SamplingOptions& options) {
  return options.logit_bias.size() <= kMostBiases;
}

// How a row is to be chosen from, and the end of its history that penalties look at (empty without
// them). `room`: tokens of a history at most.
struct RowChoice {
  ChoiceSettings settings;
  std::span<const TokenId> history;
};
inline RowChoice row_choice(const TokenChoice& choice, std::uint32_t room) {
  const SamplingOptions& o = *choice.sampling;
  RowChoice row;
  row.settings = {
      .temperature = o.temperature,
      .top_k = static_cast<std::uint32_t>(o.top_k),
      .top_p = o.top_p,
      .min_p = o.min_p,
      .repeat_penalty = o.repeat_penalty,
      .frequency_penalty = o.frequency_penalty,
      .presence_penalty = o.presence_penalty,
      .biases = static_cast<std::uint32_t>(o.logit_bias.size()),
      .seed = o.seed,
      .index = choice.index,
  };
  const bool penalties =
      o.repeat_penalty != 1.0F || o.frequency_penalty != 0.0F || o.presence_penalty != 0.0F;
  if (!penalties || o.penalty_last_n == 0) return row;
  const std::uint32_t window =
      o.penalty_last_n < 0 ? room : std::min(room, static_cast<std::uint32_t>(o.penalty_last_n));
  row.history = choice.history.last(std::min<std::size_t>(choice.history.size(), window));
  row.settings.window = window;
  row.settings.history = static_cast<std::uint32_t>(row.history.size());
  return row;
}

}  // namespace edgerunner::cuda
