#include "backend/cuda/decode_kernel.cuh"

namespace edgerunner::cuda {

void launch_decode_any(const DecodeParameters& p, const DecodeIo& io, const DecodeLaunch& how) {
  launch_decode_set<TypeSet::any>(p, io, how);
}

}  // namespace edgerunner::cuda
