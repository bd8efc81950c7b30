#pragma once

#include <cstdint>

#include "backend/cuda/decode_plan.h"
#include "backend/cuda/ptx.cuh"

// The order in which the warps of the decode kernel read their weights, and the rings in shared
// memory, one a warp, that the weights arrive in. The order depends on the model alone, so warps
// that do nothing else ask for the rows of the phases to come while the others still wait for
// this phase's activations: the memory stays busy while blocks wait for each other.
//
// Rows are dealt to warps one at a time, block by block, so that every multiprocessor gets the same
// number of rows of every matrix, give or take one. A warp takes two rows at once where it can,
// whose segments come in turn: what it reads of the activations serves both. Phases of a layer: q,
// k, v; o; gate and up, a row of each; down. After the layers comes the head.

namespace edgerunner::cuda {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

__device__ inline std::uint32_t row_step() { return gridDim.x * kDecodeWarps; }
__device__ inline std::uint32_t first_row(std::uint32_t warp) {
  return warp * gridDim.x + blockIdx.x;
}

// Warps that request weights, and the rings that each serves. Requests of one warp follow each
// other, some fifty cycles each and several hundred to look around: one warp for all twelve rings
// brought 10 bytes a cycle, where the memory has 18.
inline constexpr std::uint32_t kRequestWarps = (kDecodeLaunchThreads - kDecodeThreads) / 32;
inline constexpr std::uint32_t kRingsEach = kDecodeWarps / kRequestWarps;
static_assert(kDecodeWarps % kRequestWarps == 0 && kRingsEach <= 32);

// A ring's stages and barriers: `full` tells the reader that a stage has arrived, `empty` the
// requester that it has been read.
class Ring {
 public:
  __device__ Ring(const DecodeParameters& p, std::uint8_t* shared, std::uint32_t warp)
      : p_(p),
        stages_(shared + p.map.ring + warp * p.stages * p.stage_bytes),
        full_(reinterpret_cast<std::uint64_t*>(shared + p.map.full) + warp * p.stages) {}

  __device__ std::uint8_t* stage(std::uint32_t i) const { return stages_ + i * p_.stage_bytes; }
  __device__ std::uint64_t* full(std::uint32_t i) const { return full_ + i; }
  __device__ std::uint64_t* empty(std::uint32_t i) const {
    return full_ + kDecodeWarps * p_.stages + i;
  }
  // Steps to the next stage; the parity of its phases turns with every round.
  __device__ void advance(std::uint32_t& i, std::uint32_t& parity) const {
    if (++i == p_.stages) {
      i = 0;
      parity ^= 1U;
    }
  }

 private:
  const DecodeParameters& p_;
  std::uint8_t* stages_;
  std::uint64_t* full_;
};

// A stage that a warp reads.
struct Stage {
  const std::uint8_t* segment;
  std::uint64_t* empty;  // the barrier that says when it has been read
};

// The reading end of a warp's ring. Every lane calls.
class WeightStream {
 public:
  __device__ WeightStream(const DecodeParameters& p, std::uint8_t* shared)
      : p_(p),
        stage_(shared + p.map.ring + threadIdx.x / 32 * p.stages * p.stage_bytes),
        full_(reinterpret_cast<std::uint64_t*>(shared + p.map.full) + threadIdx.x / 32 * p.stages),
        left_(p.stages) {}

  // The next segment, once it has arrived.
  __device__ Stage take() {
    mbarrier_wait(full_, parity_);
    const Stage taken = {stage_, full_ + kDecodeWarps * p_.stages};
    stage_ += p_.stage_bytes;
    ++full_;
    if (--left_ == 0) {
      left_ = p_.stages;
      stage_ -= p_.stages * p_.stage_bytes;
      full_ -= p_.stages;
      parity_ ^= 1U;
    }
    return taken;
  }
  // Gives back a stage's room; the warp has read it.
  __device__ static void give_back(const Stage& stage) {
    if ((threadIdx.x & 31) == 0) mbarrier_arrive(stage.empty);
  }

 private:
  const DecodeParameters& p_;
  const std::uint8_t* stage_;  // the next one to read, and its barrier
  std::uint64_t* full_;
  std::uint32_t left_;  // stages before the ring's end
  std::uint32_t parity_ = 0;
};

// The requesting end of the rings: a lane serves one.
class WeightRequests {
 public:
  __device__ WeightRequests(const DecodeParameters& p, bool with_head, std::uint8_t* shared)
      : p_(p),
        with_head_(with_head),
        matrices_(reinterpret_cast<const StreamMatrix*>(shared + p.map.matrices)),
        lane_(threadIdx.x & 31),
        warp_((threadIdx.x - kDecodeThreads) / 32 +
              (lane_ < kRingsEach ? lane_ : 0) * kRequestWarps),
        ring_(p, shared, warp_) {}

  __device__ void run() {
    row_ = first_row(warp_);
    bool busy = lane_ < kRingsEach && find();
    std::uint32_t stage = 0;
    std::uint32_t parity = 1;  // of a fresh barrier's phase before the first: complete
    // The stages on their way: how many, and the oldest.
    std::uint32_t count = 0;
    std::uint32_t oldest = 0;
    std::uint32_t oldest_parity = 0;
    while (__any_sync(0xFFFFFFFFU, busy)) {
      if (count != 0 && mbarrier_test(ring_.full(oldest), oldest_parity)) {
        ring_.advance(oldest, oldest_parity);
        --count;
      }
      const bool free = busy && count < p_.in_flight && mbarrier_test(ring_.empty(stage), parity);
      if (free) {
        ++count;
        const std::uint32_t bytes = remaining_ < segment_ ? remaining_ : segment_;
        mbarrier_expect(ring_.full(stage), bytes);
        bulk_copy(ring_.stage(stage), second_turn_ ? b_ : a_, bytes, ring_.full(stage));
        ring_.advance(stage, parity);
        busy = next(bytes);
      }
      // Segments last a microsecond: looking less often leaves the others their issue slots.
      if (!__any_sync(0xFFFFFFFFU, free)) __nanosleep(40);
    }
  }

 private:
  // Steps past the request just made; false where it was the last.
  __device__ bool next(std::uint32_t bytes) {
    if (two_ && !second_turn_) {
      second_turn_ = true;
      return true;
    }
    second_turn_ = false;
    remaining_ -= bytes;
    if (remaining_ != 0) {
      a_ += bytes;
      b_ += bytes;
      return true;
    }
    row_ += two_ && phase_ != 2 ? 2 * row_step() : row_step();
    return find();
  }

  __device__ bool begin(const StreamMatrix& matrix, std::uint32_t row) {
    a_ = matrix.data + static_cast<std::size_t>(row) * matrix.row_bytes;
    two_ = row + row_step() < matrix.rows;
    b_ = a_ + static_cast<std::size_t>(row_step()) * matrix.row_bytes;
    remaining_ = matrix.row_bytes;
    segment_ = matrix.segment_bytes;
    return true;
  }

  // Begins the row row_ of the phase, or the first row of a later phase; false where none is left.
  __device__ bool find() {
    for (;;) {
      const StreamMatrix* const table = matrices_ + table_;
      if (table_ == p_.layer_count * kLayerMatrices) {
        return with_head_ && row_ < table->rows && begin(*table, row_);
      }
      if (phase_ == 0) {
        std::uint32_t row = row_;
#pragma unroll 1
        for (int m = 0; m < 3; ++m) {
          if (row < table[m].rows) return begin(table[m], row);
          row -= table[m].rows;
        }
      } else if (phase_ == 2) {
        if (row_ < table[4].rows) {
          begin(table[4], row_);
          two_ = true;
          b_ = table[5].data + static_cast<std::size_t>(row_) * table[5].row_bytes;
          return true;
        }
      } else {
        const StreamMatrix& matrix = table[phase_ == 1 ? 3 : 6];
        if (row_ < matrix.rows) return begin(matrix, row_);
      }
      row_ = first_row(warp_);
      if (++phase_ == 4) {
        phase_ = 0;
        table_ += kLayerMatrices;
      }
    }
  }

  const DecodeParameters& p_;
  const bool with_head_;
  const StreamMatrix* const matrices_;
  const std::uint32_t lane_;
  const std::uint32_t warp_;  // that reads the ring
  const Ring ring_;
  const std::uint8_t* a_ = nullptr;  // the next segment of each of the two rows
  const std::uint8_t* b_ = nullptr;
  std::uint32_t remaining_ = 0;  // bytes of either row
  std::uint32_t segment_ = 0;    // bytes of a whole segment
  std::uint32_t table_ = 0;      // index of the layer's first matrix
  std::uint32_t row_ = 0;
  std::uint32_t phase_ = 0;
  bool two_ = false;
  bool second_turn_ = false;
};

#endif

}  // namespace edgerunner::cuda
