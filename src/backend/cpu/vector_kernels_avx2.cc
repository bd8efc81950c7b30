#include "backend/cpu/simd/avx2.h"
// The algorithms follow the vector type that they are compiled for.
#include "backend/cpu/attention_impl.h"
#include "backend/cpu/kv_store_impl.h"
#include "backend/cpu/row_impl.h"

namespace edgerunner::cpu {

extern const VectorKernels kVectorKernelsAvx2;
const VectorKernels kVectorKernelsAvx2 = {Isa::avx2, rms_norm,   layer_norm,   gelu,
                                          rotate,    store_keys, store_values, attend,
                                          merge,     finish,     soft_cap_of,  exp2_of};

}  // namespace edgerunner::cpu
