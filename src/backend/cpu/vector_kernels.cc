#include "backend/cpu/vector_kernels.h"

#include <algorithm>

#include "edgerunner/error.h"

namespace edgerunner::cpu {

extern const VectorKernels kVectorKernelsScalar;
#if defined(__x86_64__)
extern const VectorKernels kVectorKernelsAvx2;
extern const VectorKernels kVectorKernelsAvx512;
#elif defined(__aarch64__)
extern const VectorKernels kVectorKernelsNeon;
extern const VectorKernels kVectorKernelsNeonI8mm;
#endif

const VectorKernels& vector_kernels(Isa isa) {
  switch (isa) {
    case Isa::scalar:
      return kVectorKernelsScalar;
#if defined(__x86_64__)
    case Isa::avx2:
      return kVectorKernelsAvx2;
    case Isa::avx512:
    case Isa::amx:
      return kVectorKernelsAvx512;
#elif defined(__aarch64__)
    case Isa::neon:
      return kVectorKernelsNeon;
    case Isa::neon_i8mm:
      return kVectorKernelsNeonI8mm;
#endif
    default:
      throw Error(ErrorCode::unsupported, "this build holds no kernels for the instruction set");
  }
}

std::size_t attention_scratch_bytes(std::uint32_t max_head_dim, std::uint32_t max_tile_rows) {
  // A page of keys and of values in f32, scores of a block of rows, sums of every row.
  constexpr std::size_t kScoreRows = 6;
  constexpr std::size_t kSumLanes = 16;
  const std::size_t page =
      std::size_t{kPageTokens} * (max_head_dim + KvHeadLayout::padded(max_head_dim));
  const std::size_t floats = page + kScoreRows * kPageTokens + max_tile_rows * kSumLanes;
  return (floats * sizeof(float) + 63) / 64 * 64;
}

}  // namespace edgerunner::cpu
