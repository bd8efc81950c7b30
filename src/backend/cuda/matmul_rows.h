#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backend/cuda/few_rows_units.cuh"
#include "tensor/element_type.h"

// What the two kernels behind launch_matmul_rows() share on the host: Hopper's (wgmma), and that of
// other devices (mma.sync).

namespace edgerunner::cuda {

// Shared memory of a block that every device of sm_80 and later has, and on Hopper all but a
// little; rows that suffice for.
inline constexpr std::size_t kLittleShared = 99 * 1024;
inline constexpr std::uint32_t kLittleRows = 16;
inline constexpr std::size_t kFullShared = 224 * 1024;

void launch_matmul_rows_wgmma(const RowsArguments& arguments, cudaStream_t stream);

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
