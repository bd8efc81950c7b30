#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "arch/adapter_set.h"
#include "arch/decoder_spec.h"
#include "backend/executor.h"

namespace edgerunner::cpu {

// Consecutive rows of a batch that attend together: tokens of one sequence.
struct PlanTile {
  const PageId* pages = nullptr;
  std::uint32_t position = 0;
  std::uint32_t tokens = 0;
  std::uint32_t row = 0;          // first row of the buffers
  std::uint32_t first_split = 0;  // that any layer needs
  std::uint32_t end_split = 0;
  std::uint32_t first_record = 0;  // of the tile's (split, token) records, where splits run apart
};

// One split of one tile, where splits run apart.
struct PlanSplit {
  std::uint32_t tile = 0;
  std::uint32_t split = 0;
};

// Consecutive rows that have the same adapters, few enough to be one thread's work.
struct PlanAdapted {
  const AdapterSet* set = nullptr;
  std::uint32_t row = 0;
  std::uint32_t rows = 0;
};

// Rows that go through a layer together.
struct PlanRows {
  std::uint32_t rows = 0;
  std::vector<const AdapterSet*> sets;  // [rows], or empty where no row has adapters
  std::vector<PlanAdapted> adapted;     // the rows that have
  std::vector<PlanTile> tiles;
  bool splits_apart = false;  // few tiles: their splits are shared out among the threads
  std::vector<PlanSplit> splits;
};

// Consecutive rows whose keys and values go to one page.
struct PlanStore {
  PageId page = kNoPage;
  std::uint32_t position = 0;
  std::uint32_t tokens = 0;
  std::uint32_t row = 0;
};

// A batch laid out as work. How it is cut never changes a row's result. Allocates at construction.
class Plan {
 public:
  Plan(const DecoderSpec& spec, const ExecutorOptions& options);

  static std::uint32_t tile_tokens(const DecoderSpec& spec);
  // Most (split, token) records at a time.
  static std::uint32_t max_records(const ExecutorOptions& options);

  void build(const Batch& batch);

  const PlanRows& all() const { return all_; }
  // The rows whose logits are wanted, which alone go through the last layer's end.
  const PlanRows& wanted() const { return wanted_; }
  std::span<const PlanStore> stores() const { return stores_; }
  // Whether every sequence has one row, as where all decode: then store i is of tile i of all().
  bool one_row_each() const { return one_row_each_; }
  std::uint32_t end_position() const { return end_position_; }  // one past the batch's last

 private:
  void add_tiles(PlanRows& rows, const SequenceSlice& slice, std::uint32_t first,
                 std::uint32_t count) const;
  void decide_splits(PlanRows& rows) const;
  static void find_adapted(PlanRows& rows);

  std::uint32_t tile_tokens_;
  std::uint32_t max_records_;
  std::uint32_t window_;  // of the layer that sees farthest
  std::uint32_t kv_heads_;
  std::uint32_t threads_;
  PlanRows all_;
  PlanRows wanted_;
  std::vector<PlanStore> stores_;
  std::uint32_t end_position_ = 0;
  bool one_row_each_ = false;
  bool has_adapters_ = false;
};

}  // namespace edgerunner::cpu
