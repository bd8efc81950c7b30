#include <type_traits>

#include "backend/cuda/chain.cuh"
#include "backend/cuda/few_rows_parts.cuh"
#include "backend/cuda/rotate_head.cuh"

namespace edgerunner::cuda {
namespace {

template <typename T>
__global__ void __launch_bounds__(kMaxHeadDim)
    rotate_parts_kernel(const __grid_constant__ PartialProduct product,
                        const __grid_constant__ StackedBias bias,
                        const __grid_constant__ AttentionShape shape,
                        const __grid_constant__ RotateWeights weights,
                        const __grid_constant__ DeviceBatch batch, float* qkv, CacheValues<T> keys,
                        CacheValues<T> values) {
  let_next_begin();
  const std::uint32_t row = blockIdx.y;
  const std::uint32_t h = blockIdx.x;
  const std::uint32_t i = threadIdx.x;
  const bool inside = i < shape.head_dim;
  const std::uint32_t at[1] = {inside ? h * shape.head_dim + i : shape.row()};
  const TileParts parts = tile_parts(product.cut, inside ? at[0] / kTileOutputs : 0);
  const int matrix = h < shape.heads ? 0 : (h < shape.heads + shape.kv_heads ? 1 : 2);
  const float* const biases = bias.part[matrix];
  const bool biased = biases != nullptr && inside;
  const float added = biased ? biases[at[0] - (matrix == 0 ? 0 : bias.end[matrix - 1])] : 0.0F;
  wait_for_previous();
  const RowHead head(shape, weights, batch, row, h);
  float sum[1];
  product_at<7>(
      product, row, at, shape.row(), [&](std::uint32_t) { return parts; }, sum);
  head.store(shape, weights.epsilon, biased ? __fadd_rn(sum[0], added) : sum[0],
             qkv + static_cast<std::size_t>(row) * shape.row() + at[0], keys, values);
}

}  // namespace

void launch_rotate_parts(const PartialProduct& product, const StackedBias& bias,
                         const AttentionShape& shape, const RotateWeights& weights,
                         const DeviceBatch& batch, float* qkv, const DeviceCache& cache,
                         cudaStream_t stream) {
  const dim3 grid(shape.heads + 2 * shape.kv_heads, batch.rows);
  visit_cache(cache, [&](auto keys, auto values) {
    using Kind = std::remove_pointer_t<decltype(keys.codes)>;
    launch_chained(rotate_parts_kernel<Kind>, grid, head_threads(shape), 0, stream, product, bias,
                   shape, weights, batch, qkv, keys, values);
  });
}

}  // namespace edgerunner::cuda
