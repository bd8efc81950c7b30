#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "arch/shape.h"
#include "backend/cuda/device_weights.h"
#include "backend/cuda/few_rows.h"
#include "backend/cuda/mixture.h"
#include "backend/executor.h"
#include "cuda/device_values.h"
#include "cuda/late_copy.h"
#include "support/random_decoder.h"

// Kernels that may begin before the one ahead of them has ended (chain.cuh), each behind one that
// lets it begin and only 100 us later writes what it reads.

namespace edgerunner::test {
namespace {

constexpr std::uint32_t kRows = 5;

class CudaChain : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_available()) GTEST_SKIP() << "no GPU";
    stream_.emplace();
    blocks_ = cuda::few_rows_blocks(cuda::device_properties().multiprocessors);
  }

  static std::vector<float> random_floats(std::size_t count, std::uint32_t seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& x : values) x = normal(generator);
    return values;
  }
  static void clear(const cuda::DeviceBuffer& buffer, int value) {
    cuda::check(cudaMemset(buffer.as<void>(), value, buffer.size()), "clearing");
    cuda::check(cudaDeviceSynchronize(), "clearing");
  }

  // What `consume` leaves in `output`, with its input in place and with its input written late.
  void expect_same(const cuda::DeviceBuffer& input, const cuda::DeviceBuffer& output,
                   const std::function<void()>& consume) {
    const cuda::DeviceBuffer right(input.size());
    cuda::check(
        cudaMemcpy(right.as<void>(), input.as<void>(), input.size(), cudaMemcpyDeviceToDevice),
        "copying");
    clear(output, 0);
    consume();
    stream_->synchronize();
    const std::vector<std::byte> expected = fetch(output);
    for (int i = 0; i < 3; ++i) {
      clear(output, 0);
      clear(input, 0x2A);
      launch_late_copy(input.as<void>(), right.as<void>(), input.size(), *stream_);
      consume();
      cuda::check(cudaGetLastError(), "launching");
      stream_->synchronize();
      EXPECT_EQ(fetch(output), expected);
    }
  }

  std::optional<cuda::Stream> stream_;
  std::uint32_t blocks_ = 0;
};

TEST_F(CudaChain, EveryKernelWaitsForTheOneBefore) {
  const Decoder decoder = shape_decoder("smollm2-135m", ElementType::q8_0);
  const cuda::DeviceWeights weights(decoder, cuda::WeightSource::random);
  const cuda::DeviceLayer& layer = weights.layers()[0];
  const std::uint32_t dim = decoder.spec.dim;
  const std::uint32_t ffn = layer.gate.rows;

  std::vector<std::uint16_t> halves(std::size_t{kRows} * dim);
  std::mt19937 generator(1);
  for (auto& half : halves) half = static_cast<std::uint16_t>(0x3800 + generator() % 1024);
  std::vector<float> packed((halves.size() + 1) / 2);
  std::memcpy(packed.data(), halves.data(), halves.size() * sizeof(halves[0]));
  const cuda::DeviceBuffer x = upload(packed);
  const cuda::DeviceBuffer scale = upload(random_floats(kRows, 2));
  const cuda::HalfRows rows{x.as<__half>(), scale.as<float>()};

  const std::uint32_t outputs = 2 * ffn;
  const cuda::DeviceBuffer parts(cuda::partial_floats(kRows, outputs) * sizeof(float));
  const cuda::StackedMatrices both = {{layer.gate, layer.up}, 2, outputs, 0};
  clear(parts, 0);
  cuda::PartialProduct product;
  expect_same(x, parts, [&] {
    product =
        cuda::launch_matmul_rows(both, rows, kRows, outputs, blocks_, parts.as<float>(), *stream_);
  });

  const cuda::DeviceBuffer y(std::size_t{kRows} * outputs * sizeof(float));
  expect_same(parts, y, [&] {
    cuda::launch_collect(product, {}, kRows, outputs, y.as<float>(), outputs, *stream_);
  });

  const cuda::DeviceBuffer hidden(std::size_t{kRows} * ffn * 2);
  const cuda::DeviceBuffer hidden_scale(kRows * sizeof(float));
  const cuda::HalfRows to{hidden.as<__half>(), hidden_scale.as<float>()};
  expect_same(parts, hidden, [&] {
    cuda::launch_gated_parts(Activation::silu, product, nullptr, nullptr, kRows, ffn, to, *stream_);
  });

  const cuda::PartialProduct down = cuda::launch_matmul_rows(
      {{layer.down}, 1, dim, 0}, to, kRows, dim, blocks_, parts.as<float>(), *stream_);
  stream_->synchronize();
  const cuda::DeviceBuffer residual(std::size_t{kRows} * dim * sizeof(float));
  expect_same(parts, residual, [&] {
    cuda::launch_add_and_norm(down, nullptr, kRows, dim, residual.as<float>(),
                              layer.feed_forward_norm, 1e-5F, rows, nullptr, *stream_);
  });
}

TEST_F(CudaChain, EveryKernelOfAMixtureWaitsForTheOneBefore) {
  constexpr std::uint32_t kDim = 288;
  const MixtureSpec spec{.count = 11, .used = 2, .ffn_dim = 96, .normalised = true};
  const RandomDecoder model(
      {.layers = 1, .heads = 8, .dim = kDim, .type = ElementType::q8_0, .mixture = spec});
  const cuda::DeviceWeights weights(model.decoder(), cuda::WeightSource::file);
  const cuda::DeviceMixture& w = weights.mixtures()[0];
  const cuda::MixtureScratch space(model.decoder().spec, {.max_rows = kRows});
  const cuda::DeviceBuffer x = upload(random_floats(std::size_t{kRows} * kDim, 1));

  const cuda::DeviceBuffer scores(std::size_t{kRows} * spec.count * sizeof(float));
  expect_same(x, scores, [&] {
    cuda::launch_route_few(w.router, x.as<float>(), kRows, scores.as<float>(), *stream_);
  });
  const cuda::DeviceBuffer experts(std::size_t{kRows} * spec.used * sizeof(std::uint32_t));
  const cuda::DeviceBuffer shares(experts.size());
  cuda::ExpertRows chosen = space.rows;
  chosen.experts = experts.as<std::uint32_t>();
  chosen.weights = shares.as<float>();
  for (const cuda::DeviceBuffer* output : {&experts, &shares}) {
    expect_same(scores, *output, [&] {
      cuda::launch_choose_experts(spec, scores.as<float>(), kRows, chosen, *stream_);
    });
  }
  const cuda::DeviceBuffer slots(experts.size());
  chosen.slots = slots.as<std::uint32_t>();
  expect_same(experts, slots, [&] {
    cuda::launch_group_by_expert(spec, kRows, cuda::kFewExpertRows, chosen, *stream_);
  });

  const cuda::DeviceBuffer half(std::size_t{kRows} * kDim * 2);
  const cuda::DeviceBuffer scale(kRows * sizeof(float));
  const cuda::HalfRows rows{half.as<__half>(), scale.as<float>()};
  for (const cuda::DeviceBuffer* output : {&half, &scale}) {
    expect_same(x, *output,
                [&] { cuda::launch_to_half(x.as<float>(), kRows, kDim, rows, *stream_); });
  }
  const cuda::DeviceBuffer products(std::size_t{kRows} * spec.used * spec.ffn_dim * sizeof(float));
  const cuda::ExpertProduct product{
      w.gate,
      spec.ffn_dim,
      chosen.sources,
      chosen.tiles,
      chosen.tile_count,
      cuda::most_tiles(kRows * spec.used, spec.count, cuda::kFewExpertRows),
      cuda::kFewExpertRows,
      products.as<float>()};
  expect_same(half, products, [&] { cuda::launch_experts_half(product, rows, *stream_); });

  const cuda::RowExperts of_row{w.gate,         w.up,      w.down,      chosen.experts,
                                chosen.weights, spec.used, spec.ffn_dim};
  const cuda::DeviceBuffer hidden(std::size_t{spec.used} * spec.ffn_dim * sizeof(float));
  expect_same(x, hidden, [&] {
    cuda::launch_row_experts_hidden(of_row, Activation::silu, x.as<float>(), hidden.as<float>(),
                                    *stream_);
  });
  const cuda::DeviceBuffer branch(std::size_t{kRows} * kDim * sizeof(float));
  expect_same(hidden, branch, [&] {
    cuda::launch_row_experts_down(of_row, hidden.as<float>(), nullptr, kDim, branch.as<float>(),
                                  *stream_);
  });
  const cuda::DeviceBuffer outputs =
      upload(random_floats(std::size_t{kRows} * spec.used * kDim, 2));
  expect_same(outputs, branch, [&] {
    cuda::launch_combine_experts(spec, chosen, outputs.as<float>(), nullptr, kRows, kDim,
                                 branch.as<float>(), *stream_);
  });
  const cuda::Norm norm{weights.layers()[0].feed_forward_norm, nullptr, 1e-5F};
  expect_same(x, half, [&] {
    cuda::launch_add_branch_to_half(branch.as<float>(), {}, 0.5F, kRows, kDim, x.as<float>(), norm,
                                    rows, *stream_);
  });
}

}  // namespace
}  // namespace edgerunner::test
