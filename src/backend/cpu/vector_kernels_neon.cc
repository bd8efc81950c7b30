#include "backend/cpu/simd/neon.h"
// The algorithms follow the vector type that they are compiled for.
#include "backend/cpu/attention_impl.h"
#include "backend/cpu/kv_store_impl.h"
#include "backend/cpu/row_impl.h"

namespace edgerunner::cpu {
namespace {

constexpr VectorKernels kernels_for(Isa isa) {
  return {isa,          rms_norm, layer_norm, gelu,   rotate,      store_keys,
          store_values, attend,   merge,      finish, soft_cap_of, exp2_of};
}

}  // namespace

// Floats and halves gain nothing from the instructions that set the two apart.
extern const VectorKernels kVectorKernelsNeon;
extern const VectorKernels kVectorKernelsNeonI8mm;
const VectorKernels kVectorKernelsNeon = kernels_for(Isa::neon);
const VectorKernels kVectorKernelsNeonI8mm = kernels_for(Isa::neon_i8mm);

}  // namespace edgerunner::cpu
