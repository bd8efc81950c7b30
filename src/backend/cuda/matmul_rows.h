#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <type_traits>

#include "backend/cuda/few_rows.h"
#include "tensor/element_type.h"

// What the two kernels behind launch_matmul_rows() share on the host: Hopper's (wgmma), and that of
// other devices (mma.sync).

namespace edgerunner::cuda {

// Threads of a block of either.
inline constexpr int kRowsThreads = 512;
// Rows that the shared memory of every device of sm_80 and later suffices for.
inline constexpr std::uint32_t kLittleRows = 16;

struct RowsArguments {
  DeviceMatrix w;       // all stacked matrices as one
  std::uint32_t first;  // output of w that the launch begins at
  HalfRows x;
  std::uint32_t rows;     // of activations
  std::uint32_t stride;   // rows that a part has room for
  std::uint32_t outputs;  // of this launch
  UnitCut cut;
  std::uint32_t device_blocks;  // at once
  float* parts;
};

// parts = x W^T as few_rows.h says, for rows up to kMostFewRows on Hopper and kLittleRows
// elsewhere. A launch that fails is left for cudaGetLastError().
void launch_matmul_rows_wgmma(const RowsArguments& arguments, cudaStream_t stream);
void launch_matmul_rows_mma(const RowsArguments& arguments, cudaStream_t stream);

// Calls launch(std::integral_constant<ElementType, type>) for a type of few_rows_supports().
template <typename Launch>
void visit_few_rows_type(ElementType type, const Launch& launch) {
  switch (type) {
    case ElementType::q8_0:
      return launch(std::integral_constant<ElementType, ElementType::q8_0>{});
    case ElementType::q4_k:
      return launch(std::integral_constant<ElementType, ElementType::q4_k>{});
    case ElementType::q6_k:
      return launch(std::integral_constant<ElementType, ElementType::q6_k>{});
    case ElementType::q4_0:
      return launch(std::integral_constant<ElementType, ElementType::q4_0>{});
    default:
      return launch(std::integral_constant<ElementType, ElementType::q4_1>{});
  }
}

}  // namespace edgerunner::cuda
