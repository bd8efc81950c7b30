#include "backend/cuda/chain.cuh"
#include "backend/cuda/few_rows_fetch.cuh"
#include "backend/cuda/few_rows_units.cuh"
#include "backend/cuda/matmul_rows.h"
#include "backend/cuda/mma.cuh"
#include "backend/cuda/ptx.cuh"
#include "backend/cuda/wgmma.cuh"

// A few rows' product on Hopper. A block of four warpgroups takes a unit at a time, 64 outputs
// each: weights become operands in registers, activations are read from shared memory by the matrix
// units, once a warpgroup.

namespace edgerunner::cuda {
namespace {

constexpr int kFullShared = 224 * 1024;  // of a block, all but a little of what it can have
constexpr int kMostStages = 5;

template <ElementType T, int kRows>
struct Sizes {
  static constexpr int kX = UnitFetch<T>::kBytes;
  static constexpr int kGroup = kRows * 128;  // 64 columns of the activations
  static constexpr int kStage = kX + 2 * kGroup;
  static constexpr int kBarriers = 2 * kMostStages * 8;
  static constexpr int kFit = (kFullShared - kBarriers) / kStage;
  static constexpr int kStages = kFit < kMostStages ? kFit : kMostStages;
  static constexpr int kAll = kStages * kStage + kBarriers;
  static_assert(kX % 1024 == 0 && kStage % 1024 == 0);  // as the matrix units want it
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// A ring of stages with barriers of its own, so that warps can run ahead of each other. Unit i of a
// block stands in stage i % kStages.
template <int kStages>
class StageRing {
 public:
  static constexpr std::uint32_t kAhead = kStages - 1;  // units asked for before the first is read

  // Every thread calls; the barriers' place in shared memory is aligned to 8.
  __device__ explicit StageRing(std::uint8_t* barriers)
      : full_(reinterpret_cast<std::uint64_t*>(barriers)), empty_(full_ + kStages) {
    if (threadIdx.x < kStages) {
      mbarrier_init(full_ + threadIdx.x, kRowsThreads);
      mbarrier_init(empty_ + threadIdx.x, kRowsThreads / 32);
    }
    __syncthreads();
  }

  // Of the unit that is read.
  __device__ std::uint32_t stage() const { return stage_; }
  __device__ void await() const { mbarrier_wait(full_ + stage_, parity_); }
  // This thread has asked for all of its part of a stage.
  __device__ void requested(std::uint32_t stage) const {
    mbarrier_arrive_after_copies(full_ + stage);
  }
  // Calls request(stage) with the stage of the unit before, once the last warp has read that.
  template <typename Request>
  __device__ void refill(bool first, const Request& request) const {
    const std::uint32_t before = stage_ == 0 ? kStages - 1 : stage_ - 1;
    if (!first) mbarrier_wait(empty_ + before, stage_ == 0 ? parity_ ^ 1U : parity_);
    request(before);
    requested(before);
  }
  // This warp has read the unit.
  __device__ void give_back() const {
    __syncwarp();
    if ((threadIdx.x & 31) == 0) mbarrier_arrive(empty_ + stage_);
  }
  __device__ void advance() {
    if (++stage_ == kStages) {
      stage_ = 0;
      parity_ ^= 1U;
    }
  }

 private:
  std::uint64_t* full_;   // all of a stage has arrived
  std::uint64_t* empty_;  // every warp has read it
  std::uint32_t stage_ = 0;
  std::uint32_t parity_ = 0;  // of the stage's round
};

#endif

// Threads that registers are dealt for. Up to 32 rows leave 96 a thread, and room for a block of
// the kernel before, so that this one's weights are on their way meanwhile.
template <int kRows>
constexpr int kRoomFor = kRows > 32 ? kRowsThreads : 640;

template <ElementType T, int kRows>
__global__ void __launch_bounds__(kRoomFor<kRows>, 1)
    rows_kernel(const __grid_constant__ RowsArguments m) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using Unit = UnitOf<T>;
  using Size = Sizes<T, kRows>;
  constexpr int kStages = Size::kStages;
  extern __shared__ __align__(1024) std::uint8_t shared[];
  const int lane = static_cast<int>(threadIdx.x & 31);
  const int warp = static_cast<int>(threadIdx.x / 32);
  const int c = lane & 3;
  const int r = lane >> 2;
  const std::uint32_t base = shared_address(shared);
  const std::uint32_t begin = m.cut.begin(blockIdx.x);
  const std::uint32_t end = m.cut.begin(blockIdx.x + 1);
  // Two neighbouring columns of every eighth row of the activations, moved to where the order of
  // the weights wants them: step s of a group's four has the columns that a lane c makes of its
  // words 2 * s and 2 * s + 1.
  const int pair = static_cast<int>(threadIdx.x) % 64;
  const int x_row = static_cast<int>(threadIdx.x) / 64;
  const int word = pair % 32 / 4;
  const int x_col =
      pair / 32 * 64 + 2 * (word & 3) + (word < 4 ? Unit::first(pair & 3) : Unit::second(pair & 3));
  const std::uint32_t x_place = static_cast<std::uint32_t>(
      Size::kX + pair / 32 * Size::kGroup + x_row * 128 + ((word ^ x_row) << 4) + (pair & 3) * 4);
  const __half* const x_from = m.x.x + static_cast<std::size_t>(x_row) * m.w.cols + x_col;
  const auto fetch_x = [&](std::uint32_t k, std::uint32_t stage) {
#pragma unroll
    for (int i = 0; i < kRows / 8; ++i) {
      copy_4(base + stage * Size::kStage + x_place + i * 1024,
             x_from + k + static_cast<std::size_t>(8 * i) * m.w.cols,
             static_cast<std::uint32_t>(x_row + 8 * i) < m.rows && k + x_col < m.w.cols);
    }
  };

  UnitFetch<T> weights(m, begin);
  StageRing<kStages> ring(shared + kStages * Size::kStage);
  constexpr std::uint32_t kAhead = StageRing<kStages>::kAhead;
  // Weights don't depend on the kernels before this one.
  std::uint32_t columns[kAhead];
#pragma unroll
  for (std::uint32_t i = 0; i < kAhead; ++i) {
    if (begin + i < end) columns[i] = weights.next(base + i * Size::kStage);
  }
  wait_for_previous();
  let_next_begin();
#pragma unroll
  for (std::uint32_t i = 0; i < kAhead; ++i) {
    if (begin + i >= end) break;
    fetch_x(columns[i], i);
    ring.requested(i);
  }

  float sum[kRows / 2] = {};
  std::uint32_t tile = begin / m.cut.units;
  std::uint32_t k = begin - tile * m.cut.units;
  for (std::uint32_t unit = begin; unit < end; ++unit) {
    ring.await();
    shared_proxy_fence();
    const std::uint32_t stage = base + ring.stage() * Size::kStage;
    const std::uint8_t* const codes = shared + ring.stage() * Size::kStage;
#pragma unroll
    for (int group = 0; group < 2; ++group) {
      std::uint32_t a[2][8];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        Unit::weights(codes, codes + UnitFetch<T>::kHeaders, warp * 16 + h * 8 + r, group, c,
                      static_cast<int>(k & 3), a[h]);
      }
      const std::uint64_t x = wgmma_tile(stage + Size::kX + group * Size::kGroup);
      wgmma_fence();
#pragma unroll
      for (int s = 0; s < 4; ++s) {
        wgmma_f16(sum, a[0][2 * s], a[1][2 * s], a[0][2 * s + 1], a[1][2 * s + 1], x + 2 * s);
      }
      wgmma_commit();
    }
    wgmma_wait<0>();
    ring.give_back();
    if (unit + kAhead < end) {
      ring.refill(unit == begin, [&](std::uint32_t freed) {
        fetch_x(weights.next(base + freed * Size::kStage), freed);
      });
    }
    ring.advance();
    if (++k != m.cut.units && unit + 1 != end) continue;

    // The part is complete.
    float* const to =
        m.parts + static_cast<std::size_t>(blockIdx.x + tile) * kRows * kTile + warp * 16 + r;
#pragma unroll
    for (int i = 0; i < kRows / 2; ++i) {
      const std::uint32_t row = i / 4 * 8 + 2 * c + (i & 1);
      if (row < m.rows) to[row * kTile + (i >> 1 & 1) * 8] = sum[i];
      sum[i] = 0;
    }
    k = 0;
    ++tile;
  }
#else
  __trap();
#endif
}

template <ElementType T, int kRows>
void launch(const RowsArguments& arguments, cudaStream_t stream) {
  constexpr int kBytes = Sizes<T, kRows>::kAll;
  const auto kernel = rows_kernel<T, kRows>;
  static const cudaError_t allowed =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  static_cast<void>(allowed);  // a launch says what is wrong
  launch_chained(kernel, dim3(arguments.cut.blocks), kRowsThreads, kBytes, stream, arguments);
}

}  // namespace

void launch_matmul_rows_wgmma(const RowsArguments& arguments, cudaStream_t stream) {
  visit_few_rows_type(arguments.w.type, [&](auto type) {
    constexpr ElementType kType = decltype(type)::value;
    if (arguments.rows <= 16) {
      launch<kType, 16>(arguments, stream);
    } else if (arguments.rows <= 32) {
      launch<kType, 32>(arguments, stream);
    } else {
      launch<kType, 64>(arguments, stream);
    }
  });
}

}  // namespace edgerunner::cuda
