#pragma once

#include <cstdint>
#include <span>

#include "arch/decoder_spec.h"
#include "backend/cuda/choose.h"
#include "backend/cuda/device.h"
#include "backend/token_chooser.h"

namespace edgerunner::cuda {

// Most tokens that one call makes of a row.
inline constexpr std::uint32_t kMostSteps = 32;

// The memory of choosing tokens for up to max_logit_rows rows, and the traffic with the host.
class Chooser {
 public:
  Chooser(const DecoderSpec& spec, const ExecutorOptions& options);
  static std::uint64_t bytes(const DecoderSpec& spec, const ExecutorOptions& options);

  // Brings choices to the device: one for each row of `logits`, [choices, vocab].
  void begin(std::span<const TokenChoice> choices, float* logits, cudaStream_t stream);
  // Chooses the next token of each, which becomes a row of the next forward pass.
  void launch(TokenId* next_tokens, std::uint32_t* next_positions, cudaStream_t stream) const;
  // What `steps` launches have chosen, [steps, rows]; valid once the stream has come so far.
  std::span<const TokenId> fetch(std::uint32_t steps, cudaStream_t stream) const;

  // Whether any row has a bias or penalties; and whether any is not greedy.
  bool changed() const { return rows_.changed; }
  bool drawn() const { return rows_.drawn; }

 private:
  // Where each array begins in the memory, in bytes.
  struct Layout {
    Layout(const DecoderSpec& spec, const ExecutorOptions& options);
    std::uint32_t history_room;
    std::size_t settings, biases, history;  // of which the host has a copy to send
    std::size_t tokens, steps, states, counts, bin_weights, bin_counts, lists;
    std::size_t sent;  // bytes of the first three
    std::size_t total;
  };

  Layout layout_;
  PinnedBuffer host_;  // settings, biases, histories; then the tokens chosen
  DeviceBuffer memory_;
  ChoiceRows rows_;
};

}  // namespace edgerunner::cuda
