#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arch/decoder_spec.h"
#include "backend/cpu/matmul.h"
#include "backend/executor.h"

namespace edgerunner::cpu {

inline constexpr std::size_t kActivationFormats = 3;

// Rows of activations prepared for products, once in each format that their weights ask for.
struct Operand {
  std::byte* format[kActivationFormats] = {};
};

// Bytes of each format for the operand of few rows that each thread prepares for itself: 8192
// floats (forward_operands.cc), and what the formats add to each row.
inline constexpr std::size_t kOwnOperandBytes = 64 * 1024;

// Products of one operand that adapters change: q, k and v.
inline constexpr std::uint32_t kMostUpdates = 3;

// What one thread needs for itself.
struct WorkerBuffers {
  float* row = nullptr;            // [dim or ffn_dim]: a row on its way to an operand
  Operand operand;                 // kOwnOperandBytes each
  std::byte* multiply = nullptr;   // multiply_scratch_bytes
  std::byte* attention = nullptr;  // attention_scratch_bytes
  float* queries = nullptr;        // [tile rows, head_dim]
  float* records[2] = {};          // [tile rows, attention_record_floats]
  float* head = nullptr;           // [head_dim]
  float* keys = nullptr;           // [kPageTokens, head_dim]
  std::uint64_t operands = 0;      // that products have been given so far: Product::operand
};

// What a row's router chose.
struct ExpertChoice {
  std::uint32_t expert = 0;
  float weight = 0;
  std::uint32_t slot = 0;  // among the rows grouped by expert
};

// Rows that go through one expert: slots [first_slot, first_slot + rows).
struct ExpertGroup {
  std::uint32_t expert = 0;
  std::uint32_t first_slot = 0;
  std::uint32_t rows = 0;
};

// What mixtures of experts need. A slot is a row on its way through one of its experts:
// max_rows * used of them.
struct MixtureSpace {
  float* scores = nullptr;              // [max_rows, count]
  float* share = nullptr;               // [max_rows]: the shared expert's gate
  ExpertChoice* choices = nullptr;      // [max_rows, used]
  std::uint32_t* source_row = nullptr;  // [slots]
  std::uint32_t* own_row = nullptr;     // [slots]: 0, 1, 2, ...
  std::uint32_t* next_slot = nullptr;   // [count]
  ExpertGroup* groups = nullptr;        // [count]
  std::uint32_t group_count = 0;
  float* outputs = nullptr;  // [slots, dim]
};

// All scratch of an executor: pieces of one allocation, touched only as far as they are used.
struct Workspace {
  float* x = nullptr;       // [max_rows, dim]: the residual stream
  float* q = nullptr;       // [max_rows, heads * head_dim]: queries, then what they attended to
  float* k = nullptr;       // [max_rows, kv_heads * head_dim]
  float* v = nullptr;       // [max_rows, kv_heads * head_dim]
  float* hidden = nullptr;  // [max_rows, ffn_dim], or of slots: gate, then silu(gate) * up
  float* branch = nullptr;  // [max_rows, dim]: a block's output that is not just added; or null
  Operand operand;          // [max_rows], or of slots, of the widest
  MixtureSpace mixture;
  // With adapters: A x of up to kMostUpdates products side by side, [max_rows, kMostUpdates,
  // adapter_floats], and the up products, which are changed before they meet the gate.
  float* low = nullptr;
  float* up = nullptr;       // [max_rows, ffn_dim]
  float* records = nullptr;  // [Plan::max_records, heads, attention_record_floats]
  std::vector<WorkerBuffers> workers;
};

// Lays the pieces out from `base` on, 64-byte aligned, and returns the bytes that they take; with
// null it only measures. Where layers differ, the largest counts.
std::size_t lay_out(std::byte* base, const DecoderSpec& spec, const ExecutorOptions& options,
                    Workspace& workspace);

}  // namespace edgerunner::cpu
