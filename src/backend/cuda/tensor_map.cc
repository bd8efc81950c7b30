#include "backend/cuda/tensor_map.h"

#include <cuda_runtime_api.h>

#include <cudaTypedefs.h>

#include "backend/cuda/device.h"
#include "edgerunner/error.h"

namespace edgerunner::cuda {
namespace {

// The driver's function, found at run time: nothing is linked to the driver's library.
PFN_cuTensorMapEncodeTiled_v12000 encoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                         cudaEnableDefault, &found),
        "looking for tensor maps");
  if (found != cudaDriverEntryPointSuccess) {
    throw Error(ErrorCode::device,
                "the NVIDIA driver is too old for this GPU's tensor maps; update it to one for "
                "CUDA 12 or later");
  }
  return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
}

CUtensorMapSwizzle swizzle_of(std::uint32_t box_bytes) {
  switch (box_bytes) {
    case 32:
      return CU_TENSOR_MAP_SWIZZLE_32B;
    case 64:
      return CU_TENSOR_MAP_SWIZZLE_64B;
    default:
      return CU_TENSOR_MAP_SWIZZLE_128B;
  }
}

}  // namespace

CUtensorMap tensor_map(const TensorRows& rows, std::uint32_t box_bytes, std::uint32_t box_rows) {
  static const PFN_cuTensorMapEncodeTiled_v12000 encode = encoder();
  CUtensorMap map;
  const cuuint64_t sizes[2] = {rows.bytes, rows.rows};
  const cuuint64_t strides[1] = {rows.row_bytes};
  const cuuint32_t box[2] = {box_bytes, box_rows};
  const cuuint32_t steps[2] = {1, 1};
  const CUresult result =
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, const_cast<void*>(rows.data), sizes, strides,
             box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(box_bytes),
             CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    throw Error(ErrorCode::device, "a matrix can't be described to the tensor memory accelerator");
  }
  return map;
}

}  // namespace edgerunner::cuda
