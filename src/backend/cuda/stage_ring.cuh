#pragma once

#include <cstdint>

#include "backend/cuda/ptx.cuh"

namespace edgerunner::cuda {

// A place in a ring of kStages stages that are gone through in turn.
template <int kStages>
class RingPlace {
 public:
  __device__ std::uint32_t stage() const { return stage_; }
  __device__ std::uint32_t parity() const { return parity_; }  // of the round
  __device__ void advance() {
    if (++stage_ == kStages) {
      stage_ = 0;
      parity_ ^= 1U;
    }
  }

 private:
  std::uint32_t stage_ = 0;
  std::uint32_t parity_ = 0;
};

// The barriers of a ring that some warps fill and others read, so that all of them can run ahead of
// each other.
template <int kStages>
class StageRing {
 public:
  static constexpr int kBytes = 2 * kStages * 8;

  // Every thread calls; `barriers` in shared memory, aligned to 8. A stage is full when every
  // filling thread's own copies and the bytes that one of them announced are there, and empty when
  // every reading warp has given it back.
  __device__ StageRing(std::uint8_t* barriers, std::uint32_t filling_threads,
                       std::uint32_t reading_warps)
      : full_(reinterpret_cast<std::uint64_t*>(barriers)), empty_(full_ + kStages) {
    if (threadIdx.x < kStages) {
      mbarrier_init(full_ + threadIdx.x, filling_threads + 1);
      mbarrier_init(empty_ + threadIdx.x, reading_warps);
    }
    mbarrier_init_fence();
    __syncthreads();
  }

  __device__ std::uint64_t* full(std::uint32_t stage) const { return full_ + stage; }
  // Filling threads, from the second round on: the stage has been read.
  __device__ void await_empty(const RingPlace<kStages>& place) const {
    mbarrier_wait(empty_ + place.stage(), place.parity() ^ 1U);
  }
  __device__ void await_full(const RingPlace<kStages>& place) const {
    mbarrier_wait(full_ + place.stage(), place.parity());
  }
  // This warp has read the stage.
  __device__ void give_back(const RingPlace<kStages>& place) const {
    __syncwarp();
    if ((threadIdx.x & 31) == 0) mbarrier_arrive(empty_ + place.stage());
  }

 private:
  std::uint64_t* full_;
  std::uint64_t* empty_;
};

}  // namespace edgerunner::cuda
