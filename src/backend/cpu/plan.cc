#include "backend/cpu/plan.h"

#include <algorithm>

#include "backend/cpu/vector_kernels.h"

namespace edgerunner::cpu {
namespace {

// Rows (query heads) of a tile: enough to pay for converting a page of the cache, few enough for
// their records and queries to stay in L2 with it.
constexpr std::uint32_t kTileRows = 60;
// With fewer units than this a thread, a tile's splits are shared out too.
constexpr std::uint32_t kUnitsPerThread = 8;
// Token records a batch may hold: 8 sequences at depth 4096.
constexpr std::uint32_t kLeastRecords = 128;

// Rows that go through an adapter at a time: enough for its matrices to be unpacked seldom.
constexpr std::uint32_t kAdaptedRows = 64;

constexpr std::uint32_t kSplitTokens = kSplitPages * kPageTokens;

}  // namespace

std::uint32_t Plan::tile_tokens(const DecoderSpec& spec) {
  std::uint32_t heads = 1;
  for (const LayerSpec& layer : spec.layers) {
    heads = std::max(heads, layer.heads / std::max(layer.kv_heads, 1U));
  }
  return std::max(1U, kTileRows / heads);
}

std::uint32_t Plan::max_records(const ExecutorOptions& options) {
  return std::max(kLeastRecords, options.max_context / kSplitTokens + 1);
}

Plan::Plan(const DecoderSpec& spec, const ExecutorOptions& options)
    : tile_tokens_(tile_tokens(spec)),
      max_records_(max_records(options)),
      window_(spec.common_window()),
      kv_heads_(spec.layers.empty() ? 1 : spec.layers.front().kv_heads),
      threads_(static_cast<std::uint32_t>(std::max(options.threads, 1))) {
  all_.tiles.reserve(options.max_rows);
  all_.splits.reserve(max_records_);
  wanted_.tiles.reserve(options.max_logit_rows);
  wanted_.splits.reserve(max_records_);
  stores_.reserve(options.max_rows);
  if (options.adapter_floats == 0) return;
  for (PlanRows* rows : {&all_, &wanted_}) {
    rows->sets.reserve(options.max_rows);
    rows->adapted.reserve(options.max_rows);
  }
}

void Plan::build(const Batch& batch) {
  for (PlanRows* rows : {&all_, &wanted_}) {
    rows->rows = 0;
    rows->tiles.clear();
    rows->splits.clear();
    rows->sets.clear();
    rows->adapted.clear();
  }
  stores_.clear();
  has_adapters_ = std::any_of(batch.sequences.begin(), batch.sequences.end(),
                              [](const SequenceSlice& slice) { return slice.adapters != nullptr; });
  end_position_ = 0;
  one_row_each_ = batch.sequences.size() == batch.tokens.size();

  std::uint32_t row = 0;
  std::size_t wanted = 0;
  for (const SequenceSlice& slice : batch.sequences) {
    add_tiles(all_, slice, 0, slice.rows);
    for (std::uint32_t done = 0; done < slice.rows;) {
      const std::uint32_t position = slice.start + done;
      const std::uint32_t count = std::min(slice.rows - done, kPageTokens - position % kPageTokens);
      stores_.push_back({slice.pages[position / kPageTokens], position, count, row + done});
      done += count;
    }
    while (wanted < batch.logit_rows.size() && batch.logit_rows[wanted] < row + slice.rows) {
      const std::size_t first = wanted++;
      while (wanted < batch.logit_rows.size() && batch.logit_rows[wanted] < row + slice.rows &&
             batch.logit_rows[wanted] == batch.logit_rows[wanted - 1] + 1) {
        ++wanted;
      }
      add_tiles(wanted_, slice, batch.logit_rows[first] - row,
                static_cast<std::uint32_t>(wanted - first));
    }
    row += slice.rows;
    end_position_ = std::max(end_position_, slice.start + slice.rows);
  }
  decide_splits(all_);
  decide_splits(wanted_);
  find_adapted(all_);
  find_adapted(wanted_);
}

void Plan::add_tiles(PlanRows& rows, const SequenceSlice& slice, std::uint32_t first,
                     std::uint32_t count) const {
  if (has_adapters_) rows.sets.insert(rows.sets.end(), count, slice.adapters);
  for (std::uint32_t done = 0; done < count;) {
    PlanTile tile;
    tile.pages = slice.pages.data();
    tile.position = slice.start + first + done;
    tile.tokens = std::min(count - done, tile_tokens_);
    tile.row = rows.rows;
    AttentionTile range;
    range.position = tile.position;
    range.tokens = tile.tokens;
    range.window = window_;
    tile.first_split = range.first_split();
    tile.end_split = range.end_split();
    rows.tiles.push_back(tile);
    rows.rows += tile.tokens;
    done += tile.tokens;
  }
}

void Plan::find_adapted(PlanRows& rows) {
  for (std::uint32_t row = 0; row < rows.sets.size(); ++row) {
    const AdapterSet* const set = rows.sets[row];
    if (set == nullptr) continue;
    const bool goes_on = !rows.adapted.empty() && rows.adapted.back().set == set &&
                         rows.adapted.back().row + rows.adapted.back().rows == row &&
                         rows.adapted.back().rows < kAdaptedRows;
    if (!goes_on) rows.adapted.push_back({set, row, 0});
    ++rows.adapted.back().rows;
  }
}

void Plan::decide_splits(PlanRows& rows) const {
  std::uint32_t records = 0;
  std::uint32_t units = 0;
  for (PlanTile& tile : rows.tiles) {
    tile.first_record = records;
    records += (tile.end_split - tile.first_split) * tile.tokens;
    units += tile.end_split - tile.first_split;
  }
  rows.splits_apart = threads_ > 1 && units > rows.tiles.size() && records <= max_records_ &&
                      rows.tiles.size() * kv_heads_ < std::size_t{kUnitsPerThread} * threads_;
  if (!rows.splits_apart) return;
  for (std::uint32_t i = 0; i < rows.tiles.size(); ++i) {
    const PlanTile& tile = rows.tiles[i];
    for (std::uint32_t split = tile.first_split; split < tile.end_split; ++split) {
      rows.splits.push_back({i, split});
    }
  }
}

}  // namespace edgerunner::cpu
