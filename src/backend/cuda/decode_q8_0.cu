#include "backend/cuda/decode_kernel.cuh"

namespace edgerunner::cuda {

void launch_decode_q8_0(const DecodeParameters& p, const DecodeIo& io, const DecodeLaunch& how) {
  launch_decode_set<TypeSet::q8_0>(p, io, how);
}

}  // namespace edgerunner::cuda
