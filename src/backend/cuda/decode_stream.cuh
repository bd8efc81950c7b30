#pragma once

#include <cstdint>

#include "backend/cuda/decode_plan.h"
#include "backend/cuda/ptx.cuh"

// The order in which a warp of the decode kernel reads its weights, and the ring in shared memory
// that they arrive in. The order depends on the model alone, so a warp asks for the rows of the
// phases to come while it still waits for this phase's activations: the memory stays busy across
// the grid's barriers.

namespace edgerunner::cuda {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// Rows are dealt to warps one at a time, block by block, so that every multiprocessor gets the same
// number of rows of every matrix, give or take one. Phases of a layer: q, k, v as one matrix; o;
// gate and up, a row of each in turn; down. After the layers comes the head.
class WeightStream {
 public:
  __device__ WeightStream(const DecodeParameters& p, const StreamMatrix* table, bool with_head,
                          std::uint8_t* ring, std::uint64_t* full, std::uint32_t first,
                          std::uint32_t step, std::uint32_t lane)
      : table_(table),
        end_(table + p.layer_count * kLayerMatrices),
        ring_(ring),
        full_(full),
        stages_(p.stages),
        stage_bytes_(p.stage_bytes),
        first_(first),
        step_(step),
        row_(first),
        lane_(lane),
        with_head_(with_head),
        policy_(evict_first_policy()) {
    find_row();
    for (std::uint32_t stage = 0; stage < stages_; ++stage) request(stage);
  }

  // The next segment of this warp, once it has arrived. Every lane calls it.
  __device__ const std::uint8_t* wait() const {
    mbarrier_wait(full_ + stage_, parity_);
    return ring_ + stage_ * stage_bytes_;
  }

  // Gives the segment's room to the next request.
  __device__ void release() {
    __syncwarp();
    request(stage_);
    if (++stage_ == stages_) {
      stage_ = 0;
      parity_ ^= 1U;
    }
  }

 private:
  __device__ void request(std::uint32_t stage) {
    if (remaining_ == 0) return;
    const std::uint32_t bytes = remaining_ < segment_ ? remaining_ : segment_;
    if (lane_ == 0) {
      mbarrier_expect(full_ + stage, bytes);
      bulk_copy(ring_ + stage * stage_bytes_, at_, bytes, full_ + stage, policy_);
    }
    at_ += bytes;
    remaining_ -= bytes;
    if (remaining_ != 0) return;
    if (phase_ == 2 && !second_) {
      second_ = true;
    } else {
      second_ = false;
      row_ += step_;
    }
    find_row();
  }

  __device__ void begin_row(const StreamMatrix& matrix, std::uint32_t row) {
    at_ = matrix.data + static_cast<std::size_t>(row) * matrix.row_bytes;
    remaining_ = matrix.row_bytes;
    segment_ = matrix.segment_bytes;
  }

  // Positions the cursor on row_ of the phase, or on the first row of a later one.
  __device__ void find_row() {
    for (;;) {
      if (table_ == end_) {
        if (with_head_ && row_ < table_->rows) begin_row(*table_, row_);
        return;
      }
      if (phase_ == 0) {
        std::uint32_t row = row_;
        for (int m = 0; m < 3; ++m) {
          if (row < table_[m].rows) return begin_row(table_[m], row);
          row -= table_[m].rows;
        }
      } else {
        const StreamMatrix& matrix =
            table_[phase_ == 1 ? 3 : (phase_ == 2 ? (second_ ? 5 : 4) : 6)];
        if (row_ < matrix.rows) return begin_row(matrix, row_);
      }
      row_ = first_;
      if (++phase_ == 4) {
        phase_ = 0;
        table_ += kLayerMatrices;
      }
    }
  }

  const StreamMatrix* table_;  // of the cursor's layer
  const StreamMatrix* end_;    // the head
  std::uint8_t* ring_;
  std::uint64_t* full_;
  std::uint32_t stages_;
  std::uint32_t stage_bytes_;
  std::uint32_t first_;
  std::uint32_t step_;
  std::uint32_t row_;
  std::uint32_t lane_;
  bool with_head_;
  bool second_ = false;
  std::uint64_t policy_;
  std::uint32_t phase_ = 0;
  const std::uint8_t* at_ = nullptr;
  std::uint32_t remaining_ = 0;
  std::uint32_t segment_ = 0;
  std::uint32_t stage_ = 0;
  std::uint32_t parity_ = 0;
};

// Waits between the phases of a token: every block's writes before arrive() are seen by every block
// after wait(). One counter that only grows, across launches too.
class GridBarrier {
 public:
  __device__ GridBarrier(unsigned* counter, unsigned start) : counter_(counter), target_(start) {}

  __device__ void arrive() {
    __syncthreads();
    if (threadIdx.x == 0) add_release(counter_, 1);
    target_ += gridDim.x;
  }
  __device__ void wait() const {
    if (threadIdx.x == 0) {
      while (static_cast<int>(load_acquire(counter_) - target_) < 0) {
      }
    }
    __syncthreads();
  }
  __device__ unsigned target() const { return target_; }

 private:
  unsigned* counter_;
  unsigned target_;
};

#endif

}  // namespace edgerunner::cuda
