#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "arch/decoder_spec.h"
#include "backend/executor.h"

namespace edgerunner::cuda {

// How attention of a few rows is cut. Up to kFewTileRows packed rows (rows of a sequence times
// query heads of a kv head) make a tile; the positions that it sees are cut into parts at multiples
// of part_tokens, so that a row's bits depend on its position and the decoder alone.
inline constexpr std::uint32_t kFewAttentionRows = 64;  // of a batch
inline constexpr std::uint32_t kFewTileRows = 16;       // of a matrix of the tensor cores
inline constexpr std::uint32_t kAttentionRows = 64;     // packed rows of a tile of many
inline constexpr std::uint32_t kMostParts = 32;         // of a row: a lane each joins them

struct AttentionCut {
  std::uint32_t tile_rows = 0;   // of a tile of many rows (attention.h), at most
  std::uint32_t few_rows = 0;    // of a tile of few
  std::uint32_t part_pages = 0;  // of the smallest parts
};
// A part is a block's work. Few kv heads make few blocks of a sequence, so their parts are smaller.
AttentionCut attention_cut(const DecoderSpec& spec);

// Positions of a part for a row at `position`: as many as keep the parts to kMostParts.
constexpr std::uint32_t part_tokens(std::uint32_t part_pages, std::uint32_t position) {
  std::uint32_t tokens = part_pages * kPageTokens;
  while (position >= kMostParts * tokens) tokens *= 2;
  return tokens;
}

// How many parts such a row has. A rest of less than half a part goes to the last one.
constexpr std::uint32_t parts_at(std::uint32_t tokens, std::uint32_t position) {
  const std::uint32_t parts = (position + tokens / 2) / tokens;
  return parts == 0 ? 1 : parts;
}
// Within a multiple of this all rows have parts of the same size and as many of them: no tile
// reaches across it.
constexpr std::uint32_t part_border(std::uint32_t part_pages) {
  return part_pages * kPageTokens / 2;
}

// Most parts of any row of up to `context` positions.
constexpr std::uint32_t most_parts(std::uint32_t part_pages, std::uint32_t context) {
  const std::uint32_t needed = parts_at(part_pages * kPageTokens, context);
  return needed < kMostParts ? needed : kMostParts;
}

// A tile's part: rows [first, first + rows) of the batch, `before` rows of the same sequence before
// them, and which of its parts, counted from the first that the window reaches.
struct alignas(16) AttentionPart {
  std::uint32_t first = 0;
  std::uint32_t rows = 0;
  std::uint32_t before = 0;
  std::uint32_t part = 0;
};

// A batch's parts in device memory, growing downwards from `end`, lower parts of all tiles first.
// Some at the end may turn out not to be needed.
struct AttentionPartList {
  const AttentionPart* end = nullptr;
  const std::uint32_t* count = nullptr;
  std::uint32_t part_pages = 0;
};

// Writes the parts of a batch downwards from `end` and returns how many there are. Sequences may
// grow by `further` positions. At most kFewAttentionRows * kMostParts.
std::uint32_t write_parts(std::span<const SequenceSlice> sequences, const AttentionCut& cut,
                          std::uint32_t further, AttentionPart* end);

// What parts leave for those who join them. All in device memory.
struct AttentionPartials {
  float* sums = nullptr;              // [rows, heads, most_parts, head_dim]
  float2* stats = nullptr;            // [rows, heads, most_parts]: peak, total
  std::uint32_t* arrivals = nullptr;  // [rows, columns], zeros between launches
  std::uint32_t most_parts = 0;
};

}  // namespace edgerunner::cuda
