#pragma once

#include <cstdint>

#include "backend/cuda/decode_plan.h"
#include "backend/cuda/ptx.cuh"

// The order in which a warp of the decode kernel reads its weights, and the ring in shared memory
// that they arrive in. The order depends on the model alone, so a warp asks for the rows of the
// phases to come while it still waits for this phase's activations: the memory stays busy while
// blocks wait for each other.

namespace edgerunner::cuda {

// Where a warp's next request begins. In shared memory, used by one lane: registers are short, and
// what spills from them would miss the little L1 that the ring leaves.
struct alignas(16) StreamCursor {
  const std::uint8_t* at;
  std::uint32_t remaining;  // bytes of the row; 0: nothing left to ask for
  std::uint32_t segment;    // bytes of a whole segment
  std::uint32_t table;      // index of the layer's first matrix
  std::uint32_t row;
  std::uint32_t phase;
  std::uint32_t second;  // of the two rows of a feed-forward output
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// Rows are dealt to warps one at a time, block by block, so that every multiprocessor gets the same
// number of rows of every matrix, give or take one. Phases of a layer: q, k, v as one matrix; o;
// gate and up, a row of each in turn; down. After the layers comes the head.
class WeightStream {
 public:
  __device__ WeightStream(const DecodeParameters& p, bool with_head, std::uint8_t* shared)
      : p_(p), shared_(shared), with_head_(with_head) {}

  __device__ void start() {
    if (lane() == 0) {
      StreamCursor& c = cursor();
      c = {nullptr, 0, 0, 0, first_row(), 0, 0};
      find_row(c);
    }
    for (std::uint32_t stage = 0; stage < p_.stages; ++stage) request(stage);
  }

  // The next segment of this warp, once it has arrived. Every lane calls it.
  __device__ const std::uint8_t* wait() const {
    mbarrier_wait(full(stage_), parity_);
    return ring(stage_);
  }

  // Gives the segment's room to the next request.
  __device__ void release() {
    __syncwarp();
    request(stage_);
    if (++stage_ == p_.stages) {
      stage_ = 0;
      parity_ ^= 1U;
    }
  }

  __device__ static std::uint32_t first_row() { return threadIdx.x / 32 * gridDim.x + blockIdx.x; }
  __device__ static std::uint32_t row_step() { return gridDim.x * kDecodeWarps; }

 private:
  __device__ static std::uint32_t lane() { return threadIdx.x & 31; }
  __device__ std::uint32_t slot(std::uint32_t stage) const {
    return threadIdx.x / 32 * p_.stages + stage;
  }
  __device__ std::uint64_t* full(std::uint32_t stage) const {
    return reinterpret_cast<std::uint64_t*>(shared_ + p_.map.full) + slot(stage);
  }
  __device__ std::uint8_t* ring(std::uint32_t stage) const {
    return shared_ + p_.map.ring + slot(stage) * p_.stage_bytes;
  }
  __device__ StreamCursor& cursor() const {
    return reinterpret_cast<StreamCursor*>(shared_ + p_.map.cursors)[threadIdx.x / 32];
  }

  __device__ void request(std::uint32_t stage) const {
    if (lane() != 0) return;
    StreamCursor& c = cursor();
    const std::uint32_t remaining = c.remaining;
    if (remaining == 0) return;
    const std::uint8_t* const at = c.at;
    const std::uint32_t bytes = remaining < c.segment ? remaining : c.segment;
    mbarrier_expect(full(stage), bytes);
    bulk_copy(ring(stage), at, bytes, full(stage));
    if (remaining != bytes) {
      c.at = at + bytes;
      c.remaining = remaining - bytes;
      return;
    }
    if (c.phase == 2 && c.second == 0) {
      c.second = 1;
    } else {
      c.second = 0;
      c.row += row_step();
    }
    find_row(c);
  }

  __device__ static void begin_row(StreamCursor& c, const StreamMatrix& matrix, std::uint32_t row) {
    c.at = matrix.data + static_cast<std::size_t>(row) * matrix.row_bytes;
    c.remaining = matrix.row_bytes;
    c.segment = matrix.segment_bytes;
  }

  // Positions the cursor on its row of the phase, or on the first row of a later one.
  __device__ void find_row(StreamCursor& c) const {
    c.remaining = 0;
    for (;;) {
      const StreamMatrix* const table =
          reinterpret_cast<const StreamMatrix*>(shared_ + p_.map.matrices) + c.table;
      if (c.table == p_.layer_count * kLayerMatrices) {
        if (with_head_ && c.row < table->rows) begin_row(c, *table, c.row);
        return;
      }
      if (c.phase == 0) {
        std::uint32_t row = c.row;
#pragma unroll 1
        for (int m = 0; m < 3; ++m) {
          if (row < table[m].rows) return begin_row(c, table[m], row);
          row -= table[m].rows;
        }
      } else {
        const StreamMatrix& matrix = table[c.phase == 1 ? 3 : (c.phase == 2 ? 4 + c.second : 6)];
        if (c.row < matrix.rows) return begin_row(c, matrix, c.row);
      }
      c.row = first_row();
      if (++c.phase == 4) {
        c.phase = 0;
        c.table += kLayerMatrices;
      }
    }
  }

  const DecodeParameters& p_;
  std::uint8_t* shared_;
  bool with_head_;
  std::uint32_t stage_ = 0;
  std::uint32_t parity_ = 0;
};

#endif

}  // namespace edgerunner::cuda
