#include "backend/cuda/attention_parts.h"

#include <algorithm>
#include <array>

namespace edgerunner::cuda {

AttentionCut attention_cut(const DecoderSpec& spec) {
  constexpr std::uint32_t kFewKvHeads = 4;
  AttentionCut cut{kAttentionRows, kFewTileRows, 8};
  for (const LayerSpec& layer : spec.layers) {
    const std::uint32_t group = layer.heads / layer.kv_heads;
    cut.tile_rows = std::min(cut.tile_rows, std::max(1U, kAttentionRows / group));
    cut.few_rows = std::min(cut.few_rows, std::max(1U, kFewTileRows / group));
    if (layer.kv_heads <= kFewKvHeads) cut.part_pages = 4;
  }
  return cut;
}

std::uint32_t write_parts(std::span<const SequenceSlice> sequences, const AttentionCut& cut,
                          std::uint32_t further, AttentionPart* end) {
  struct Tile {
    AttentionPart part;
    std::uint32_t parts;
  };
  std::array<Tile, kFewAttentionRows> tiles;
  std::uint32_t tile_count = 0;
  std::uint32_t deepest = 0;
  std::uint32_t row = 0;
  const std::uint32_t border = part_border(cut.part_pages);
  for (const SequenceSlice& slice : sequences) {
    for (std::uint32_t i = 0; i < slice.rows;) {
      const std::uint32_t first = slice.start + i;
      const std::uint32_t rows = std::min({cut.few_rows, slice.rows - i, border - first % border});
      const std::uint32_t last = first + rows - 1;
      const std::uint32_t tokens = part_tokens(cut.part_pages, last);
      // Where parts grow on the way, there are most just before.
      const std::uint32_t parts = tokens == part_tokens(cut.part_pages, last + further)
                                      ? parts_at(tokens, last + further)
                                      : kMostParts;
      tiles[tile_count++] = {{row + i, rows, i, 0}, parts};
      deepest = std::max(deepest, parts);
      i += rows;
    }
    row += slice.rows;
  }
  std::uint32_t count = 0;
  for (std::uint32_t part = 0; part < deepest; ++part) {
    for (std::uint32_t i = 0; i < tile_count; ++i) {
      if (part >= tiles[i].parts) continue;
      AttentionPart& written = *(end - ++count);
      written = tiles[i].part;
      written.part = part;
    }
  }
  return count;
}

}  // namespace edgerunner::cuda
