#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backend/cuda/choice_steps.h"

namespace edgerunner::cuda {

// The rows that are chosen from together. Arrays of rows lie one after another.
struct ChoiceRows {
  const ChoiceSettings* settings = nullptr;  // [rows]
  ChoiceState* states = nullptr;             // [rows]
  float* logits = nullptr;                   // [rows, vocab]
  std::uint32_t* counts = nullptr;           // [rows, vocab]
  TokenId* history = nullptr;                // [rows, history_room]
  const Bias* biases = nullptr;              // [rows, kMostBiases]
  std::uint64_t* bin_weights = nullptr;      // [rows, kBins]
  std::uint32_t* bin_counts = nullptr;       // [rows, kBins]
  Listed* lists = nullptr;                   // [rows, kListRoom]
  TokenId* tokens = nullptr;                 // [steps, rows]: what was chosen
  std::uint32_t* steps = nullptr;            // [rows], tokens chosen since the batch began
  std::uint32_t history_room = 0;
  std::uint32_t vocab = 0;
  std::uint32_t rows = 0;
  bool changed = false;  // whether any row has a bias or penalties
  bool drawn = false;    // whether any row is not greedy
};

// Chooses the next token of every row and counts it. The tokens chosen and the positions that they
// take become the next forward pass's rows.
void launch_choose(const ChoiceRows& rows, TokenId* next_tokens, std::uint32_t* next_positions,
                   cudaStream_t stream);

}  // namespace edgerunner::cuda
