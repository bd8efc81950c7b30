#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "backend/cuda/buffers.h"
#include "backend/cuda/device_weights.h"

namespace edgerunner::cuda {

// One layer as the decode kernel sees it.
struct alignas(16) DecodeLayer {
  DeviceLayer weights;
  AttentionShape shape;
  DeviceCache cache;
  std::uint32_t ffn_dim = 0;
};

// A matrix as the weight stream sees it; copied into shared memory.
struct StreamMatrix {
  const std::uint8_t* data = nullptr;
  std::uint32_t rows = 0;
  std::uint32_t row_bytes = 0;
  std::uint32_t segment_bytes = 0;
  std::uint32_t padding = 0;
};
inline constexpr std::uint32_t kLayerMatrices = 7;  // q, k, v, o, gate, up, down

// What one token reads and leaves, all in device memory.
struct DecodeIo {
  const TokenId* token = nullptr;
  const std::uint32_t* position = nullptr;
  const std::uint32_t* pages = nullptr;  // the sequence's page table
  float* logits = nullptr;               // [vocab], or null: the head is left out
  // Where given, the arg-max of the logits is put in *next_token and next_position[0] becomes
  // position + 1; and `produced`, where given, receives it at index *produced_count.
  TokenId* next_token = nullptr;
  std::uint32_t* next_position = nullptr;
  TokenId* produced = nullptr;
  std::uint32_t* produced_count = nullptr;
  // Where given, each block's clock at points of every phase:
  // [blocks][4 * layers + 1][kTimelinePoints].
  long long* timeline = nullptr;
};
// Points of a phase, as a block's first warp sees them. Few, since each costs every token.
inline constexpr std::uint32_t kPhaseBegun = 0;     // of the first phase alone
inline constexpr std::uint32_t kPhaseReceived = 1;  // its input
inline constexpr std::uint32_t kPhaseRowsDone = 2;
inline constexpr std::uint32_t kTimelinePoints = 4;

// Where things lie in a block's shared memory, in bytes from its start. Kept among the parameters,
// so that addresses cost no registers.
struct SharedMap {
  std::uint32_t scales = 0, sums = 0;      // of the quantised vector, whose codes are at 0
  std::uint32_t squares = 0;               // [kDecodeThreads], what each thread adds to the norm
  std::uint32_t new_key = 0, scratch = 0;  // attention's, over the same bytes; queries at 0
  std::uint32_t turns = 0, table = 0, matrices = 0, layers = 0, reduce = 0;
  std::uint32_t residual = 0;        // [kResidualRows][kDecodeWarps], of the warps' own rows
  std::uint32_t ring = 0, full = 0;  // stages of all warps, and their barriers: full, then empty
};

constexpr std::uint64_t type_bit(ElementType type) {
  return std::uint64_t{1} << static_cast<std::uint32_t>(type);
}

// The kernel's constant arguments.
struct DecodeParameters {
  const DecodeLayer* layers = nullptr;     // [layer_count]
  const StreamMatrix* matrices = nullptr;  // [layer_count][kLayerMatrices], then the head
  std::uint32_t layer_count = 0;
  std::uint32_t dim = 0;
  std::uint32_t vocab = 0;
  std::uint32_t pairs = 0;
  std::uint32_t table_pages = 0;    // page table entries kept in shared memory
  std::uint32_t widest = 0;         // columns of the widest matrix
  std::uint32_t widest_group = 0;   // query heads that share a kv head, times head_dim
  std::uint32_t widest_head = 0;    // head_dim
  std::uint32_t scratch_heads = 0;  // query heads that attention computes at once, 8 at most
  std::uint32_t mma_head_dim = 0;   // head_dim where the tensor cores compute attention, or 0
  std::uint32_t stage_bytes = 0;    // of one stage of a warp's ring
  std::uint32_t stages = 0;         // of a warp's ring
  std::uint32_t in_flight = 0;      // most stages of a ring that are on their way at once
  std::uint32_t split_tokens = 0;   // fewest tokens of a part of a sequence (decode_attention.cuh)
  std::uint64_t type_mask = 0;      // type_bit of every streamed matrix's element type
  SharedMap map;
  float epsilon = 0;
  float inverse_dim = 0;
  RopeLayout rope_layout = RopeLayout::interleaved;
  double rope_magnitude = 1;
  const double* inverse_frequencies = nullptr;  // [pairs]
  DeviceMatrix embedding;
  DeviceMatrix head;
  const float* output_norm = nullptr;
  // Vectors that blocks hand each other, with tags (published.cuh).
  std::uint32_t* x = nullptr;         // [dim], the residual after a layer
  std::uint32_t* x_middle = nullptr;  // [dim], and after its attention
  std::uint64_t* qkv = nullptr;       // [qkv_row]
  std::uint32_t* attended = nullptr;  // [q_dim]
  std::uint32_t* hidden = nullptr;    // [ffn]
  std::uint64_t* best = nullptr;      // [2 * blocks], each block's largest logit and its index
  std::uint64_t* partials = nullptr;  // [kv_heads][splits][heads of a group][head_dim + 2]
  unsigned* next_tag = nullptr;       // the next token's first
};

// Decodes one row of one sequence in one persistent cooperative kernel. Fast precision, Hopper.
class DecodePlan {
 public:
  // Whether the kernel covers this model on this device: widths that are multiples of 32, heads
  // that are multiples of 8 up to 128, everything inside shared memory.
  static bool supports(const DecoderSpec& spec, const ExecutorOptions& options,
                       const DeviceProperties& device);
  DecodePlan(const DecoderSpec& spec, const ExecutorOptions& options,
             const DeviceProperties& device, const DeviceWeights& weights, const CachePool& cache,
             const double* inverse_frequencies);

  void launch(const DecodeIo& io, cudaStream_t stream) const;
  std::uint32_t blocks() const { return blocks_; }
  std::uint64_t stream_bytes() const { return stream_bytes_; }  // weights read for a token

 private:
  DecodeParameters parameters_;
  std::uint32_t blocks_ = 0;
  std::uint32_t shared_bytes_ = 0;
  std::uint64_t stream_bytes_ = 0;
  KvPrecision kv_;
  DeviceBuffer layers_;
  DeviceBuffer matrices_;
  DeviceBuffer state_;
};

// decode_kernel.cu
struct DecodeLaunch {
  KvPrecision kv;
  std::uint32_t blocks;
  std::uint32_t shared_bytes;
  cudaStream_t stream;
};
SharedMap decode_shared_map(const DecodeParameters& parameters);
void launch_decode(const DecodeParameters& parameters, const DecodeIo& io, const DecodeLaunch& how);
// The kernels for weights that are all Q8_0, all Q4_K and Q6_K, or anything: each takes minutes to
// compile.
void launch_decode_q8_0(const DecodeParameters& p, const DecodeIo& io, const DecodeLaunch& how);
void launch_decode_k_quants(const DecodeParameters& p, const DecodeIo& io, const DecodeLaunch& how);
void launch_decode_any(const DecodeParameters& p, const DecodeIo& io, const DecodeLaunch& how);

// Threads that compute in a block of the decode kernel; four more warps request weights. Twelve
// warps: with the requesting group that is all that a multiprocessor's registers allow
// without spilling any, and what spills would miss the little L1 that the ring leaves.
inline constexpr std::uint32_t kDecodeThreads = 384;
inline constexpr std::uint32_t kDecodeWarps = kDecodeThreads / 32;
// A whole warpgroup more, since registers are handed over by warpgroups.
inline constexpr std::uint32_t kDecodeLaunchThreads = kDecodeThreads + 128;
// Most rows of the residual that a warp computes.
inline constexpr std::uint32_t kResidualRows = 8;

}  // namespace edgerunner::cuda
