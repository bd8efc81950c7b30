#include "backend/cuda/decode_plan.h"

namespace edgerunner::cuda {
namespace {

constexpr std::uint32_t align(std::uint32_t bytes) { return (bytes + 127) & ~127U; }

}  // namespace

SharedMap decode_shared_map(const DecodeParameters& p) {
  SharedMap m{};
  m.scales = align(p.widest);
  m.sums = m.scales + align(p.widest / 32 * 4);
  m.squares = m.sums + align(p.widest / 16 * 4);
  const std::uint32_t activations = m.squares + align(kDecodeThreads * 4);
  // Eight heads of f16 at least, which the tensor cores read.
  m.new_key =
      align(p.widest_group * 4 > 16 * p.widest_head ? p.widest_group * 4 : 16 * p.widest_head);
  m.scratch = m.new_key + align(p.widest_head * 4);
  const std::uint32_t attention =
      m.scratch + align(kDecodeWarps * p.scratch_heads * (p.widest_head + 4) * 4);
  m.turns = activations > attention ? activations : attention;
  m.table = m.turns + align(p.pairs * 8);
  m.matrices = m.table + align(p.table_pages * 4);
  m.layers = m.matrices + align((p.layer_count * kLayerMatrices + 1) *
                                static_cast<std::uint32_t>(sizeof(StreamMatrix)));
  m.residual = m.layers + align(2 * static_cast<std::uint32_t>(sizeof(DecodeLayer)));
  m.reduce = m.residual + align(kResidualRows * kDecodeWarps * 4);
  m.ring = m.reduce + 512;
  m.full = m.ring + kDecodeWarps * p.stages * p.stage_bytes;
  return m;
}

void launch_decode(const DecodeParameters& p, const DecodeIo& io, const DecodeLaunch& how) {
  if (p.type_mask == type_bit(ElementType::q8_0)) {
    launch_decode_q8_0(p, io, how);
  } else if ((p.type_mask & ~(type_bit(ElementType::q4_k) | type_bit(ElementType::q6_k))) == 0) {
    launch_decode_k_quants(p, io, how);
  } else {
    launch_decode_any(p, io, how);
  }
}

}  // namespace edgerunner::cuda
