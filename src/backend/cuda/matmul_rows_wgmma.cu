#include <algorithm>

#include "backend/cuda/chain.cuh"
#include "backend/cuda/few_rows_units.cuh"
#include "backend/cuda/matmul_rows.h"
#include "backend/cuda/stage_ring.cuh"
#include "backend/cuda/tensor_map.h"
#include "backend/cuda/wgmma.cuh"

// A few rows' product on Hopper. Four warps of a block fetch units, by the tensor memory
// accelerator but for the headers; four warpgroups multiply them, 64 outputs each: weights become
// operands in registers, activations are read from shared memory by the matrix units, once a
// warpgroup.

namespace edgerunner::cuda {
namespace {

constexpr int kFullShared = 224 * 1024;  // of a block, all but a little of what it can have
constexpr int kMostStages = 5;
[[maybe_unused]] constexpr int kMultiplyingWarps = kRowsThreads / 32;
constexpr int kFetchingThreads = 128;
constexpr int kThreads = kRowsThreads + kFetchingThreads;
// Registers of a thread: as many as there are, but for up to 32 rows as few as leave room for a
// block of what follows (few_rows_ops.cu).
template <int kRows>
constexpr int kRegisters = kRows <= 32 ? 80 : 96;
// Of one that multiplies whole tiles of rows, and of one that fetches for them.
[[maybe_unused]] constexpr int kMultiplyingRegisters = 112;
[[maybe_unused]] constexpr int kFetchingRegisters = 32;

template <ElementType T, int kRows>
struct Sizes {
  static constexpr int kX = UnitPlaces<T>::kBytes;
  static constexpr int kGroup = kRows * 128;  // 64 columns of the activations
  static constexpr int kStage = kX + 2 * kGroup;
  static constexpr int kFit = (kFullShared - StageRing<kMostStages>::kBytes) / kStage;
  static constexpr int kStages = kFit < kMostStages ? kFit : kMostStages;
  static constexpr int kAll = kStages * kStage + StageRing<kStages>::kBytes;
  static_assert(kX % 1024 == 0 && kStage % 1024 == 0);  // as the matrix units want it
};

// A launch's matrices for the tensor memory accelerator: the weights' planes, and the activations.
struct RowsMaps {
  CUtensorMap planes[2];
  CUtensorMap x;
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// What a fetching thread does: all units of the block in their order, once for each tile of rows.
template <ElementType T, int kRows>
__device__ void fetch_units(const RowsArguments& m, const RowsMaps& maps,
                            const StageRing<Sizes<T, kRows>::kStages>& ring, std::uint32_t base) {
  using Unit = UnitOf<T>;
  using Size = Sizes<T, kRows>;
  constexpr std::uint32_t kByTensorCopies = UnitPlaces<T>::kHeaders + 2 * Size::kGroup;
  const int thread = static_cast<int>(threadIdx.x) - kRowsThreads;
  const std::uint32_t begin = m.cut.begin(blockIdx.x);
  const std::uint32_t count = m.cut.begin(blockIdx.x + 1) - begin;
  const std::uint32_t row_tiles = (m.rows + kRows - 1) / kRows;
  const std::uint32_t all = count * ((row_tiles - blockIdx.y + gridDim.y - 1) / gridDim.y);
  UnitWalk<T> walk(m.cut, m.w.cols, begin);
  std::uint32_t left = count;  // of the tile of rows
  const auto fetch_weights = [&](std::uint32_t stage) {
    const std::uint32_t to = base + stage * Size::kStage;
    const std::uint32_t first = m.first + walk.tile() * kTile;
    const int n = walk.blocks();
    const int at = walk.at();
    const int present = walk.present();
    if (thread == 0) {
      mbarrier_expect(ring.full(stage), kByTensorCopies);
#pragma unroll
      for (int p = 0; p < Unit::kPlanes; ++p) {
        const std::uint32_t plane = to + UnitPlaces<T>::plane(p);
        const std::uint32_t byte = walk.segment() + Unit::code_offset(p, n, at);
        if (all == count) {
          tensor_copy<true>(plane, maps.planes + p, byte, first, ring.full(stage));
        } else {
          tensor_copy<false>(plane, maps.planes + p, byte, first, ring.full(stage));
        }
      }
    }
    const int rows = static_cast<int>(m.outputs - walk.tile() * kTile);  // of the tile, and more
    const std::uint8_t* from =
        m.w.data + static_cast<std::size_t>(first + thread) * m.w.row_bytes + walk.segment();
#pragma unroll
    for (int row = thread; row < kTile; row += kFetchingThreads) {
      Unit::header(to + UnitPlaces<T>::kHeaders + row * Unit::kHeaderBytes, from, n, at,
                   row < rows ? present : 0);
      from += std::size_t{kFetchingThreads} * m.w.row_bytes;
    }
    mbarrier_arrive_after_copies(ring.full(stage));
    walk.advance();
    if (--left == 0) {
      walk = UnitWalk<T>(m.cut, m.w.cols, begin);
      left = count;
    }
  };
  UnitWalk<T> x_walk = walk;
  std::uint32_t x_left = count;
  std::uint32_t x_row = blockIdx.y * kRows;
  const auto fetch_x = [&](std::uint32_t stage) {
    if (thread != 0) return;
    const std::uint32_t to = base + stage * Size::kStage + Size::kX;
    const std::uint32_t byte = x_walk.column() * 2;
    tensor_copy<false>(to, &maps.x, byte, x_row, ring.full(stage));
    tensor_copy<false>(to + Size::kGroup, &maps.x, byte + 128, x_row, ring.full(stage));
    x_walk.advance();
    if (--x_left == 0) {
      x_walk = UnitWalk<T>(m.cut, m.w.cols, begin);
      x_left = count;
      x_row += gridDim.y * kRows;
    }
  };

  // Weights don't depend on the kernels before this one.
  RingPlace<Size::kStages> place;
  const std::uint32_t filled = min(all, static_cast<std::uint32_t>(Size::kStages));
  for (std::uint32_t i = 0; i < filled; ++i) fetch_weights(i);
  wait_for_previous();
  for (std::uint32_t i = 0; i < all; ++i) {
    if (i >= filled) {
      ring.await_empty(place);
      fetch_weights(place.stage());
    }
    fetch_x(place.stage());
    place.advance();
  }
}

// What a multiplying thread does with them.
template <ElementType T, int kRows>
__device__ void multiply_units(const RowsArguments& m,
                               const StageRing<Sizes<T, kRows>::kStages>& ring,
                               const std::uint8_t* shared, int warp) {
  using Unit = UnitOf<T>;
  using Size = Sizes<T, kRows>;
  const int lane = static_cast<int>(threadIdx.x & 31);
  const int c = lane & 3;
  const int row_of_lane = warp * 16 + Unit::row_of(lane >> 2);
  const std::uint32_t begin = m.cut.begin(blockIdx.x);
  const std::uint32_t end = m.cut.begin(blockIdx.x + 1);
  // Products are waited for after the next ones have been asked for, and so the matrix units work
  // while operands are made. There is no room for these beside the sums of a whole tile of rows,
  // where the other warpgroups keep the matrix units busy.
  constexpr int kInFlight = kRows == kRowTile ? 0 : 1;
  RingPlace<Size::kStages> place;
  for (std::uint32_t first_row = blockIdx.y * kRows; first_row < m.rows;
       first_row += gridDim.y * kRows) {
    std::uint32_t tile = begin / m.cut.units;
    std::uint32_t k = begin - tile * m.cut.units;
    for (std::uint32_t unit = begin; unit < end;) {
      // The units of a part.
      const std::uint32_t last = min(end, unit + m.cut.units - k) - 1;
      float sum[kRows / 2] = {};
      RingPlace<Size::kStages> reading = place;  // the stage whose products are in flight
#pragma unroll 1
      for (std::uint32_t i = unit; i <= last; ++i) {
        ring.await_full(place);
        const std::uint8_t* const stage = shared + place.stage() * Size::kStage;
#pragma unroll
        for (int group = 0; group < 2; ++group) {
          std::uint32_t a[2][8];
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            Unit::weights(stage, stage + UnitPlaces<T>::kHeaders, row_of_lane + h * 8, group, c,
                          static_cast<int>(k & 3), a[h]);
          }
          const std::uint64_t x =
              wgmma_tile(shared_address(stage) + Size::kX + group * Size::kGroup);
          wgmma_fence();
#pragma unroll
          for (int s = 0; s < 4; ++s) {
            wgmma_f16(sum, a[0][2 * s], a[1][2 * s], a[0][2 * s + 1], a[1][2 * s + 1], x + 2 * s);
          }
          wgmma_commit();
          wgmma_wait<kInFlight>();
          if (kInFlight == 1 && group == 0 && i != unit) ring.give_back(reading);
        }
        if (kInFlight == 0) ring.give_back(place);
        reading = place;
        place.advance();
        ++k;
      }
      if (kInFlight == 1) {
        wgmma_wait<0>();
        ring.give_back(reading);
      }

      float* const to =
          m.parts + (static_cast<std::size_t>(blockIdx.x + tile) * m.stride + first_row) * kTile +
          row_of_lane;
#pragma unroll
      for (int i = 0; i < kRows / 2; ++i) {
        const std::uint32_t row = i / 4 * 8 + 2 * c + (i & 1);
        if (first_row + row < m.rows) to[row * kTile + (i >> 1 & 1) * 8] = sum[i];
      }
      unit = last + 1;
      k = 0;
      ++tile;
    }
  }
}

#endif

template <ElementType T, int kRows>
__global__ void __maxnreg__(kRegisters<kRows>)
    rows_kernel(const __grid_constant__ RowsArguments m, const __grid_constant__ RowsMaps maps) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using Size = Sizes<T, kRows>;
  extern __shared__ __align__(1024) std::uint8_t shared[];
  let_next_begin();
  // The same for all lanes, and the compiler knows.
  const int warp = __shfl_sync(0xFFFFFFFFU, static_cast<int>(threadIdx.x / 32), 0);
  const StageRing<Size::kStages> ring(shared + Size::kStages * Size::kStage, kFetchingThreads,
                                      kMultiplyingWarps);
  if (warp >= kMultiplyingWarps) {
    if constexpr (kRows == kRowTile) keep_registers<kFetchingRegisters>();
    fetch_units<T, kRows>(m, maps, ring, shared_address(shared));
  } else {
    if constexpr (kRows == kRowTile) take_registers<kMultiplyingRegisters>();
    wait_for_previous();
    multiply_units<T, kRows>(m, ring, shared, warp);
  }
#else
  __trap();
#endif
}

template <ElementType T>
RowsMaps maps_of(const RowsArguments& m, std::uint32_t room) {
  RowsMaps maps{};
  for (int p = 0; p < UnitOf<T>::kPlanes; ++p) {
    maps.planes[p] =
        tensor_map({m.w.data, m.w.row_bytes, m.w.rows, m.w.row_bytes},
                   static_cast<std::uint32_t>(UnitOf<T>::pieces(p) * 16), kTileOutputs);
  }
  maps.x = tensor_map({m.x.x, m.w.cols * 2, m.rows, std::size_t{m.w.cols} * 2}, 128, room);
  return maps;
}

template <ElementType T, int kRows>
void launch(const RowsArguments& arguments, cudaStream_t stream) {
  constexpr int kBytes = Sizes<T, kRows>::kAll;
  const auto kernel = rows_kernel<T, kRows>;
  static const cudaError_t allowed =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  static_cast<void>(allowed);  // a launch says what is wrong
  // Where a matrix has too few units for all blocks, its tiles of rows are shared out among them.
  const std::uint32_t tiles = (arguments.rows + kRows - 1) / kRows;
  const std::uint32_t sharing =
      std::clamp(arguments.device_blocks / arguments.cut.blocks, 1U, tiles);
  launch_chained(kernel, dim3(arguments.cut.blocks, sharing), kThreads, kBytes, stream, arguments,
                 maps_of<T>(arguments, kRows));
}

}  // namespace

void launch_matmul_rows_wgmma(const RowsArguments& arguments, cudaStream_t stream) {
  visit_few_rows_type(arguments.w.type, [&](auto type) {
    constexpr ElementType kType = decltype(type)::value;
    if (arguments.rows <= 16) {
      launch<kType, 16>(arguments, stream);
    } else if (arguments.rows <= 32) {
      launch<kType, 32>(arguments, stream);
    } else if (arguments.rows <= 64) {
      launch<kType, 64>(arguments, stream);
    } else {
      launch<kType, kRowTile>(arguments, stream);
    }
  });
}

}  // namespace edgerunner::cuda
