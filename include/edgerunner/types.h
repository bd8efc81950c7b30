#pragma once

#include <cstdint>

namespace edgerunner {

// The index of a token in the vocabulary. Negative values never name a token.
using TokenId = std::int32_t;
inline constexpr TokenId kNoToken = -1;

// Where a forward pass runs.
enum class BackendKind { reference, cpu, cuda };

// The numeric contract (docs/numerics.md). `exact`: f32 weights, activations and accumulation.
// `fast`: activations quantised to 8 bits a 32-block, or bf16.
enum class Precision { fast, exact };

// Element type of the KV cache. `q8`: 8 bits, with a scale for each position and KV head.
enum class KvPrecision { f16, f32, q8 };

constexpr const char* name(KvPrecision kv) {
  return kv == KvPrecision::f16 ? "f16" : kv == KvPrecision::f32 ? "f32" : "q8";
}

// The cache that a precision asks for: rounding it to f16 costs more than `exact` promises.
constexpr KvPrecision default_kv(Precision precision) {
  return precision == Precision::exact ? KvPrecision::f32 : KvPrecision::f16;
}

}  // namespace edgerunner
