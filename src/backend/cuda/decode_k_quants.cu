#include "backend/cuda/decode_kernel.cuh"

namespace edgerunner::cuda {

void launch_decode_k_quants(const DecodeParameters& p, const DecodeIo& io,
                            const DecodeLaunch& how) {
  launch_decode_set<TypeSet::k_quants>(p, io, how);
}

}  // namespace edgerunner::cuda
