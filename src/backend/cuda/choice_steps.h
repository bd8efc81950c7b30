#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "base/exponential.h"
#include "base/random.h"
#include "edgerunner/types.h"

// Choosing a token from a row of logits, in steps that many threads take together: what the
// runtime's Sampler does, arranged so that no step sorts a vocabulary. Plain C++ for the device and
// for the host, where tests run it with a team of one.
//
// Weights are e^((logit - largest) / temperature), added as integers in units of 2^-44: sums don't
// depend on the order of their terms, and a vocabulary of 2^18 tokens stays below 2^62. Tokens are
// in the sampler's order: by falling logit, then by rising id; where nothing is to be cut off the
// order is by id alone, as there.
//
// 1. prepare: bias and penalties, in place.
// 2. survey: the largest and the smallest logit, and whether all are finite.
// 3. weigh: tokens are counted and their weights added up in bins that ascend in the order.
// 4. gather: the tokens of the bins that matter, which are few, go into a list.
// 5. finish: each token of the list finds out what stands before it, and the one drawn says so.

#ifdef __CUDACC__
#define EDGERUNNER_STEP __host__ __device__ inline
#else
#define EDGERUNNER_STEP inline
#endif

namespace edgerunner::cuda {

inline constexpr std::uint32_t kBins = 2048;
// Tokens of a list. Nuclei of real models have hundreds; each looks at all others in finish().
inline constexpr std::uint32_t kListRoom = 4096;
inline constexpr std::uint32_t kMostBiases = 1024;

struct Bias {
  TokenId token = 0;
  float value = 0;
};

// How one row is to be chosen from; constant over a call.
struct ChoiceSettings {
  float temperature = 0;
  std::uint32_t top_k = 0;
  float top_p = 1;
  float min_p = 0;
  float repeat_penalty = 1;
  float frequency_penalty = 0;
  float presence_penalty = 0;
  std::uint32_t window = 0;  // tokens of the history that are penalised; 0: none
  std::uint32_t biases = 0;
  std::uint64_t seed = 0;
  std::uint64_t index = 0;    // of the call's first token
  std::uint32_t history = 0;  // tokens of the history before the call's first choice
};

struct Listed {
  std::uint64_t key = 0;
  std::uint64_t weight = 0;
  std::uint64_t weight_before = 0;  // of the tokens before it in the order
  std::uint32_t count_before = 0;
  float share = 0;  // the weight as the sampler's float
};

// What threads tell each other of a row. All zero between calls of finish() and survey().
struct ChoiceState {
  std::uint64_t best = 0;      // order_key of the likeliest token
  std::uint64_t total = 0;     // of the weights
  std::uint64_t before = 0;    // weights in the bins before the listed ones
  std::uint32_t lowest = 0;    // ~ordered() of the smallest finite logit
  std::uint32_t infinite = 0;  // logits that are not finite, and those of them
  std::uint32_t banned = 0;    // that a bias made so
  std::uint32_t listed = 0;
  std::uint32_t unlisted = 0;  // 1: too many tokens for the list
};

// One row's memory.
struct ChoiceRow {
  const ChoiceSettings* settings = nullptr;
  ChoiceState* state = nullptr;
  float* logits = nullptr;               // [vocab]; changed
  std::uint32_t* counts = nullptr;       // [vocab], zeros between calls
  TokenId* history = nullptr;            // the last tokens of the sequence; grows
  const Bias* biases = nullptr;          // [settings->biases]
  std::uint64_t* bin_weights = nullptr;  // [kBins], zeros between calls, as the next
  std::uint32_t* bin_counts = nullptr;   // [kBins]
  Listed* list = nullptr;                // [kListRoom]
  std::uint32_t vocab = 0;
  std::uint32_t step = 0;  // tokens chosen earlier in this call
};

EDGERUNNER_STEP bool is_finite(float x) {
  return (std::bit_cast<std::uint32_t>(x) & 0x7F800000U) != 0x7F800000U;
}

// Unsigned integers in the order of the floats; both zeros are one.
EDGERUNNER_STEP std::uint32_t ordered(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x + 0.0F);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}
EDGERUNNER_STEP float from_ordered(std::uint32_t x) {
  return std::bit_cast<float>((x & 0x80000000U) != 0 ? x & 0x7FFFFFFFU : ~x);
}

// Larger keys come first; no two tokens have the same.
EDGERUNNER_STEP std::uint64_t order_key(float logit, std::uint32_t token) {
  return std::uint64_t{ordered(logit)} << 32 | ~token;
}
EDGERUNNER_STEP TokenId token_of(std::uint64_t key) {
  return static_cast<TokenId>(~static_cast<std::uint32_t>(key));
}

// What follows from settings and survey: how tokens are ordered, weighed and put into bins.
struct Scale {
  float largest;
  float temperature;
  float bins_a_unit;
  std::uint32_t tokens_a_bin;
  bool by_id;
  float floor;  // tokens that weigh less take no part; 0 where they are cut off later

  EDGERUNNER_STEP explicit Scale(const ChoiceRow& row) {
    const ChoiceSettings& s = *row.settings;
    largest = from_ordered(static_cast<std::uint32_t>(row.state->best >> 32));
    const float range = largest - from_ordered(~row.state->lowest);
    temperature = s.temperature;
    bins_a_unit = range > 0 && is_finite(range) ? static_cast<float>(kBins - 1) / range : 0.0F;
    tokens_a_bin = (row.vocab + kBins - 1) / kBins;
    by_id = (s.top_k == 0 || s.top_k >= row.vocab) && s.top_p >= 1.0F;
    floor = by_id ? s.min_p : 0.0F;
  }
  EDGERUNNER_STEP float share(float logit) const {
    const float x = exp_of_negative((logit - largest) / temperature);
    return x < floor ? 0.0F : x;
  }
  EDGERUNNER_STEP static std::uint64_t weight(float share) {
    return static_cast<std::uint64_t>(share * 0x1p44F);
  }
  EDGERUNNER_STEP std::uint32_t bin(float logit, std::uint32_t token) const {
    if (by_id) return token / tokens_a_bin;
    const float bin = (largest - logit) * bins_a_unit;
    return bin < static_cast<float>(kBins - 1) ? static_cast<std::uint32_t>(bin) : kBins - 1;
  }
  EDGERUNNER_STEP std::uint64_t key(float logit, std::uint32_t token) const {
    return by_id ? std::uint64_t{~token} : order_key(logit, token);
  }
};

EDGERUNNER_STEP bool is_greedy(const ChoiceRow& row) { return row.settings->temperature == 0; }
EDGERUNNER_STEP bool is_unreadable(const ChoiceRow& row) {
  return row.state->infinite != row.state->banned || row.state->best == 0;
}

// A number of [0, total), the draw of the row's current token.
EDGERUNNER_STEP std::uint64_t draw_below(const ChoiceRow& row, std::uint64_t total) {
  const double u = uniform_at(row.settings->seed, row.settings->index + row.step);
  const auto drawn = static_cast<std::uint64_t>(u * static_cast<double>(total));
  return drawn < total ? drawn : total - 1;
}

// A Team is the threads that take a step of one row: rank() of size() over the vocabulary;
// block_rank() of block_size() within a block, which alone can sync(), sum() and
// sum_before() (over the ranks below); add() and max() are atomic.

template <typename Team>
EDGERUNNER_STEP void prepare(const Team& team, const ChoiceRow& row) {
  const ChoiceSettings& s = *row.settings;
  for (std::uint32_t i = team.block_rank(); i < s.biases; i += team.block_size()) {
    const Bias bias = row.biases[i];
    const float old = team.add(row.logits + bias.token, bias.value);
    if (is_finite(old) && !is_finite(bias.value)) team.add(&row.state->banned, 1U);
  }
  if (s.window == 0) return;
  team.sync();
  const std::uint32_t end = s.history + row.step;
  const std::uint32_t begin = end > s.window ? end - s.window : 0;
  for (std::uint32_t i = begin + team.block_rank(); i < end; i += team.block_size()) {
    team.add(row.counts + row.history[i], 1U);
  }
  team.sync();
  for (std::uint32_t i = begin + team.block_rank(); i < end; i += team.block_size()) {
    const TokenId token = row.history[i];
    const std::uint32_t count = team.take(row.counts + token);
    if (count == 0) continue;  // done at another occurrence
    float x = row.logits[token];
    x = x > 0 ? x / s.repeat_penalty : x * s.repeat_penalty;
    row.logits[token] = x - (static_cast<float>(count) * s.frequency_penalty + s.presence_penalty);
  }
}

template <typename Team>
EDGERUNNER_STEP void survey(const Team& team, const ChoiceRow& row) {
  std::uint64_t best = 0;
  std::uint32_t lowest = 0;
  std::uint32_t infinite = 0;
  for (std::uint32_t i = team.rank(); i < row.vocab; i += team.size()) {
    const float x = row.logits[i];
    if (!is_finite(x)) {
      ++infinite;
      continue;
    }
    const std::uint64_t key = order_key(x, i);
    best = key > best ? key : best;
    lowest = ~ordered(x) > lowest ? ~ordered(x) : lowest;
  }
  team.max(&row.state->best, best);
  team.max(&row.state->lowest, lowest);
  if (infinite != 0) team.add(&row.state->infinite, infinite);
}

template <typename Team>
EDGERUNNER_STEP void weigh(const Team& team, const ChoiceRow& row) {
  if (is_greedy(row) || is_unreadable(row)) return;
  const Scale scale(row);
  for (std::uint32_t i = team.rank(); i < row.vocab; i += team.size()) {
    const float x = row.logits[i];
    if (!is_finite(x)) continue;
    const std::uint64_t weight = Scale::weight(scale.share(x));
    if (weight == 0) continue;
    const std::uint32_t bin = scale.bin(x, i);
    team.add(row.bin_counts + bin, 1U);
    team.add(row.bin_weights + bin, weight);
  }
}

template <typename Team>
EDGERUNNER_STEP void gather(const Team& team, const ChoiceRow& row) {
  if (is_greedy(row) || is_unreadable(row)) return;
  const ChoiceSettings& s = *row.settings;
  const Scale scale(row);
  // Each thread of a block looks at bins side by side; every block finds the same.
  const std::uint32_t share = kBins / team.block_size();
  const std::uint32_t first = team.block_rank() * share;
  std::uint64_t count = 0;
  std::uint64_t weight = 0;
  for (std::uint32_t bin = first; bin < first + share; ++bin) {
    count += row.bin_counts[bin];
    weight += row.bin_weights[bin];
  }
  const std::uint64_t total = team.sum(weight);
  const bool by_count = s.top_k > 0 && s.top_k < row.vocab;
  const double wanted = static_cast<double>(s.top_p) * static_cast<double>(total);
  const std::uint64_t drawn = draw_below(row, total);
  const auto enough = [&](std::uint64_t counted, std::uint64_t weighed) {
    if (scale.by_id) return weighed > drawn;
    return by_count ? counted >= s.top_k : static_cast<double>(weighed) >= wanted;
  };
  std::uint64_t counted = team.sum_before(count);
  std::uint64_t weighed = team.sum_before(weight);
  for (std::uint32_t bin = first; bin < first + share; ++bin) {
    const bool before = enough(counted, weighed);
    const std::uint64_t weight_before = weighed;
    counted += row.bin_counts[bin];
    weighed += row.bin_weights[bin];
    // The first bin with which it is enough, or the last one where it never is.
    const bool after = enough(counted, weighed) || bin == kBins - 1;
    if ((bin == 0 || !before) && after) {
      team.tell({bin, counted > kListRoom && !scale.by_id, weight_before});
    }
  }
  team.sync();
  const auto border = team.told();
  if (team.rank() == 0) {
    row.state->total = total;
    row.state->before = border.weight_before;
    row.state->unlisted = border.too_many ? 1 : 0;
  }
  if (border.too_many) return;
  for (std::uint32_t i = team.rank(); i < row.vocab; i += team.size()) {
    const float x = row.logits[i];
    if (!is_finite(x)) continue;
    const std::uint32_t bin = scale.bin(x, i);
    if (bin > border.bin || (scale.by_id && bin != border.bin)) continue;
    const float exact = scale.share(x);
    const std::uint64_t units = Scale::weight(exact);
    if (units == 0) continue;
    row.list[team.add(&row.state->listed, 1U)] = {scale.key(x, i), units, 0, 0, exact};
  }
}

// Chooses from the list, and clears what the steps before have left. One block. The token is
// returned to every thread.
template <typename Team>
EDGERUNNER_STEP TokenId finish(const Team& team, const ChoiceRow& row) {
  const ChoiceSettings& s = *row.settings;
  const ChoiceState state = *row.state;
  TokenId token = kNoToken;
  if (!is_unreadable(row) && is_greedy(row)) {
    token = token_of(state.best);
  } else if (!is_unreadable(row) && state.unlisted == 0) {
    const Scale scale(row);
    const bool by_count = s.top_k > 0 && s.top_k < row.vocab;
    std::uint64_t likeliest = 0;  // of the top_k
    for (std::uint32_t i = team.block_rank(); i < state.listed; i += team.block_size()) {
      Listed& mine = row.list[i];
      std::uint64_t weight = 0;
      std::uint32_t count = 0;
      for (std::uint32_t j = 0; j < state.listed; ++j) {
        const bool before = row.list[j].key > mine.key;
        weight += before ? row.list[j].weight : 0;
        count += before ? 1 : 0;
      }
      mine.weight_before = weight;
      mine.count_before = count;
      if (by_count && count < s.top_k) likeliest += mine.weight;
    }
    likeliest = by_count ? team.sum(likeliest) : state.total;
    const double wanted = static_cast<double>(s.top_p) * static_cast<double>(likeliest);
    const auto kept = [&](const Listed& listed) {
      if (scale.by_id) return true;
      if (by_count && listed.count_before >= s.top_k) return false;
      if (listed.share < s.min_p) return false;
      return s.top_p >= 1.0F || listed.count_before == 0 ||
             static_cast<double>(listed.weight_before) < wanted;
    };
    std::uint64_t drawn = 0;
    if (scale.by_id) {
      drawn = draw_below(row, state.total) - state.before;
    } else {
      std::uint64_t weight = 0;
      for (std::uint32_t i = team.block_rank(); i < state.listed; i += team.block_size()) {
        if (kept(row.list[i])) weight += row.list[i].weight;
      }
      drawn = draw_below(row, team.sum(weight));
    }
    // Those kept stand before those that are not, so that the first of these begins at their sum.
    for (std::uint32_t i = team.block_rank(); i < state.listed; i += team.block_size()) {
      const Listed& listed = row.list[i];
      if (!kept(listed) || drawn < listed.weight_before ||
          drawn - listed.weight_before >= listed.weight) {
        continue;
      }
      team.choose(token_of(listed.key));
    }
    team.sync();
    token = team.chosen();
  }
  team.sync();
  for (std::uint32_t bin = team.block_rank(); bin < kBins; bin += team.block_size()) {
    row.bin_counts[bin] = 0;
    row.bin_weights[bin] = 0;
  }
  if (team.block_rank() == 0) {
    *row.state = {};
    if (s.window != 0 && token != kNoToken) row.history[s.history + row.step] = token;
  }
  return token;
}

}  // namespace edgerunner::cuda
