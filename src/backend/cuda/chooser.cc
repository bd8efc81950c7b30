#include "backend/cuda/chooser.h"

#include <algorithm>

#include "backend/cuda/choice_settings.h"

namespace edgerunner::cuda {

Chooser::Layout::Layout(const DecoderSpec& spec, const ExecutorOptions& options)
    : history_room(options.max_context + kMostSteps) {
  std::size_t at = 0;
  const auto take = [&](std::size_t bytes_of_a_row) {
    constexpr std::size_t kAlignment = 256;
    const std::size_t begin = at;
    at += (options.max_logit_rows * bytes_of_a_row + kAlignment - 1) / kAlignment * kAlignment;
    return begin;
  };
  settings = take(sizeof(ChoiceSettings));
  biases = take(kMostBiases * sizeof(Bias));
  history = take(history_room * sizeof(TokenId));
  sent = at;
  tokens = take(kMostSteps * sizeof(TokenId));
  steps = take(sizeof(std::uint32_t));
  states = take(sizeof(ChoiceState));
  counts = take(spec.vocab_size * sizeof(std::uint32_t));
  bin_weights = take(kBins * sizeof(std::uint64_t));
  bin_counts = take(kBins * sizeof(std::uint32_t));
  lists = take(kListRoom * sizeof(Listed));
  total = at;
}

Chooser::Chooser(const DecoderSpec& spec, const ExecutorOptions& options)
    : layout_(spec, options),
      host_(layout_.sent + std::size_t{options.max_logit_rows} * kMostSteps * sizeof(TokenId)),
      memory_(layout_.total) {
  check(cudaMemset(memory_.as<void>(), 0, layout_.total), "clearing the memory of choices");
  const auto array = [&]<typename T>(T*& pointer, std::size_t at) {
    pointer = reinterpret_cast<T*>(memory_.as<std::byte>() + at);
  };
  array(rows_.settings, layout_.settings);
  array(rows_.biases, layout_.biases);
  array(rows_.history, layout_.history);
  array(rows_.tokens, layout_.tokens);
  array(rows_.steps, layout_.steps);
  array(rows_.states, layout_.states);
  array(rows_.counts, layout_.counts);
  array(rows_.bin_weights, layout_.bin_weights);
  array(rows_.bin_counts, layout_.bin_counts);
  array(rows_.lists, layout_.lists);
  rows_.history_room = layout_.history_room;
  rows_.vocab = spec.vocab_size;
}

std::uint64_t Chooser::bytes(const DecoderSpec& spec, const ExecutorOptions& options) {
  return Layout(spec, options).total;
}

void Chooser::begin(std::span<const TokenChoice> choices, float* logits, cudaStream_t stream) {
  rows_.rows = static_cast<std::uint32_t>(choices.size());
  rows_.logits = logits;
  rows_.changed = false;
  rows_.drawn = false;
  auto* const host = host_.as<std::byte>();
  const auto send = [&](std::size_t at, std::size_t bytes) {
    if (bytes == 0) return;
    check(cudaMemcpyAsync(memory_.as<std::byte>() + at, host + at, bytes, cudaMemcpyHostToDevice,
                          stream),
          "uploading how to sample");
  };
  auto* const settings = reinterpret_cast<ChoiceSettings*>(host + layout_.settings);
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const RowChoice row = row_choice(choices[i], layout_.history_room - kMostSteps);
    settings[i] = row.settings;
    rows_.changed = rows_.changed || row.settings.biases > 0 || row.settings.window > 0;
    rows_.drawn = rows_.drawn || row.settings.temperature != 0;

    const std::size_t biases_at = layout_.biases + i * kMostBiases * sizeof(Bias);
    auto* bias = reinterpret_cast<Bias*>(host + biases_at);
    for (const auto& [token, value] : choices[i].sampling->logit_bias) *bias++ = {token, value};
    send(biases_at, row.settings.biases * sizeof(Bias));

    const std::size_t history_at = layout_.history + i * layout_.history_room * sizeof(TokenId);
    std::copy(row.history.begin(), row.history.end(),
              reinterpret_cast<TokenId*>(host + history_at));
    send(history_at, row.history.size_bytes());
  }
  send(layout_.settings, choices.size() * sizeof(ChoiceSettings));
  check(cudaMemsetAsync(rows_.steps, 0, choices.size() * sizeof(std::uint32_t), stream),
        "starting to choose");
}

void Chooser::launch(TokenId* next_tokens, std::uint32_t* next_positions,
                     cudaStream_t stream) const {
  launch_choose(rows_, next_tokens, next_positions, stream);
}

std::span<const TokenId> Chooser::fetch(std::uint32_t steps, cudaStream_t stream) const {
  auto* const to = reinterpret_cast<TokenId*>(host_.as<std::byte>() + layout_.sent);
  const std::size_t count = std::size_t{steps} * rows_.rows;
  check(cudaMemcpyAsync(to, rows_.tokens, count * sizeof(TokenId), cudaMemcpyDeviceToHost, stream),
        "fetching tokens");
  return {to, count};
}

}  // namespace edgerunner::cuda
