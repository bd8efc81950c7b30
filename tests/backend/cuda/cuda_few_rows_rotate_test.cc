#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "backend/cuda/device.h"
#include "backend/cuda/device_weights.h"
#include "backend/cuda/few_rows.h"
#include "backend/executor.h"
#include "cuda/device_values.h"
#include "cuda/late_copy.h"
#include "support/random_decoder.h"

// Queries, keys and values of a few rows in one kernel after their product, against a sum of the
// product's parts and the kernel that rotates and caches any number of rows.

namespace edgerunner::test {
namespace {

constexpr std::uint32_t kBatchRows = 5;
constexpr std::uint32_t kCachePages = 3;

struct RotateCase {
  KvPrecision kv;
  std::uint32_t head_dim;
  RopeLayout layout;
  bool extras;  // biases, and norms of heads
};

class CudaFewRowsRotate : public testing::TestWithParam<RotateCase> {
 protected:
  void SetUp() override {
    if (!cuda_available()) GTEST_SKIP() << "no GPU";
  }

  std::vector<float> random_floats(std::size_t count) {
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& x : values) x = normal(generator_);
    return values;
  }

  std::mt19937 generator_{5};
};

TEST_P(CudaFewRowsRotate, HasTheBitsOfSeparateKernelsBehindALateOne) {
  const RotateCase& c = GetParam();
  const RandomDecoder model({.layers = 1,
                             .heads = 6,
                             .kv_heads = 2,
                             .head_dim = c.head_dim,
                             .dim = 1056,
                             .ffn_dim = 64,
                             .vocab = 64,
                             .type = ElementType::q8_0});
  const cuda::DeviceWeights weights(model.decoder(), cuda::WeightSource::file);
  const cuda::DeviceLayer& w = weights.layers()[0];
  const cuda::AttentionShape shape{6, 2, c.head_dim, 0, 1, 0};
  const std::uint32_t dim = w.q.cols;
  const cuda::Stream stream;

  std::vector<std::uint16_t> halves(std::size_t{kBatchRows} * dim);
  for (auto& half : halves) half = static_cast<std::uint16_t>(0x3800 + generator_() % 1024);
  const auto x = upload(halves);
  const auto scale = upload(random_floats(kBatchRows));
  const std::uint32_t blocks = cuda::few_rows_blocks(cuda::device_properties().multiprocessors);
  const cuda::DeviceBuffer parts(cuda::partial_floats(kBatchRows, shape.row()) * sizeof(float));
  cuda::check(cudaDeviceSynchronize(), "uploading");
  const cuda::PartialProduct product = cuda::launch_matmul_rows(
      {{w.q, w.k, w.v}, 3, shape.row(), 0}, {x.as<__half>(), scale.as<float>()}, kBatchRows,
      shape.row(), blocks, parts.as<float>(), stream);

  const auto some_bias = upload(random_floats(shape.row()));
  const auto* const b = some_bias.as<float>();
  cuda::StackedBias bias = {{nullptr, nullptr, nullptr},
                            {shape.q_dim(), shape.q_dim() + shape.kv_dim(), shape.row()}};
  const auto norms = upload(random_floats(2 * std::size_t{c.head_dim}));
  const std::uint32_t pairs = c.head_dim / 2 - (c.extras ? 3 : 0);
  const auto table = upload(random_floats(std::size_t{kBatchRows} * pairs * 2));
  cuda::RotateWeights rotate;
  rotate.epsilon = 1e-5F;
  rotate.table = table.as<float2>();
  rotate.pairs = pairs;
  rotate.layout = c.layout;
  if (c.extras) {
    rotate.q_norm = norms.as<float>();
    rotate.k_norm = norms.as<float>() + c.head_dim;
    bias.part[0] = b;
    bias.part[2] = b + shape.q_dim();
  }
  const auto positions = upload(std::vector<std::uint32_t>{0, 63, 64, 70, 1});
  const auto offsets = upload(std::vector<std::uint32_t>{0, 0, 0, 0, 2});
  const auto pages = upload(std::vector<std::uint32_t>{2, 0, 1});
  const cuda::DeviceBatch batch{nullptr, positions.as<std::uint32_t>(), offsets.as<std::uint32_t>(),
                                pages.as<std::uint32_t>(), kBatchRows};

  const std::size_t cache_rows = std::size_t{kCachePages} * shape.kv_heads * kPageTokens;
  const auto run = [&](bool joined) {
    const cuda::DeviceBuffer keys(cache_rows * c.head_dim * sizeof(float));
    const cuda::DeviceBuffer values(keys.size());
    const cuda::DeviceBuffer scales(2 * cache_rows * sizeof(float));
    const cuda::DeviceBuffer qkv(std::size_t{kBatchRows} * shape.row() * sizeof(float));
    for (const auto* buffer : {&keys, &values, &scales, &qkv}) {
      cuda::check(cudaMemset(buffer->as<void>(), 0, buffer->size()), "clearing");
    }
    cuda::check(cudaDeviceSynchronize(), "clearing");
    const cuda::DeviceCache cache{keys.as<void>(), values.as<void>(), c.kv, scales.as<float>(),
                                  scales.as<float>() + cache_rows};
    if (joined) {
      const cuda::DeviceBuffer right(parts.size());
      cuda::check(
          cudaMemcpy(right.as<void>(), parts.as<void>(), parts.size(), cudaMemcpyDeviceToDevice),
          "copying");
      cuda::check(cudaMemset(parts.as<void>(), 0x2A, parts.size()), "spoiling");
      cuda::check(cudaDeviceSynchronize(), "spoiling");
      launch_late_copy(parts.as<void>(), right.as<void>(), parts.size(), stream);
      cuda::launch_rotate_parts(product, bias, shape, rotate, batch, qkv.as<float>(), cache,
                                stream);
      stream.synchronize();
    } else {
      cuda::launch_collect(product, bias, kBatchRows, shape.row(), qkv.as<float>(), shape.row(),
                           stream);
      cuda::launch_rotate_and_cache(shape, rotate, batch, qkv.as<float>(), cache, stream);
      stream.synchronize();
    }
    cuda::check(cudaGetLastError(), "launching");
    std::vector<std::byte> queries;
    const auto all = fetch(qkv);
    for (std::uint32_t row = 0; row < kBatchRows; ++row) {
      const auto first =
          all.begin() + static_cast<std::ptrdiff_t>(row * shape.row() * sizeof(float));
      queries.insert(queries.end(), first,
                     first + static_cast<std::ptrdiff_t>(shape.q_dim() * sizeof(float)));
    }
    return std::vector{queries, fetch(keys), fetch(values), fetch(scales)};
  };
  stream.synchronize();
  const auto separate = run(false);
  EXPECT_EQ(run(true), separate);
  EXPECT_TRUE(std::any_of(separate[0].begin(), separate[0].end(),
                          [](std::byte byte) { return byte != std::byte{0}; }));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, CudaFewRowsRotate,
    testing::Values(RotateCase{KvPrecision::f16, 64, RopeLayout::interleaved, false},
                    RotateCase{KvPrecision::f16, 128, RopeLayout::half_split, true},
                    RotateCase{KvPrecision::f32, 80, RopeLayout::half_split, true},
                    RotateCase{KvPrecision::q8, 64, RopeLayout::interleaved, true},
                    RotateCase{KvPrecision::q8, 256, RopeLayout::half_split, false}));

}  // namespace
}  // namespace edgerunner::test
