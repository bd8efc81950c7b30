#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "backend/cuda/device.h"
#include "backend/cuda/device_weights.h"
#include "backend/cuda/mixture.h"
#include "backend/cuda/ops.h"
#include "backend/cuda/prefill_ops.h"
#include "backend/executor.h"
#include "cuda/device_values.h"
#include "support/random_decoder.h"
#include "tensor/dequantize.h"

// The kernels that families beyond llama need, each against plain arithmetic in double.

namespace edgerunner::test {
namespace {

double gelu(double x) {
  return 0.5 * x *
         (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

class CudaFamilyOps : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_available()) GTEST_SKIP() << "no GPU";
    stream_.emplace();
  }

  std::vector<float> random_floats(std::size_t count, float mean = 0, float spread = 1) {
    std::normal_distribution<float> normal(mean, spread);
    std::vector<float> values(count);
    for (float& x : values) x = normal(generator_);
    return values;
  }
  template <typename T>
  std::vector<T> fetch(const T* from, std::size_t count) {
    stream_->synchronize();
    cuda::check(cudaGetLastError(), "launching");
    std::vector<T> values(count);
    cuda::check(cudaMemcpy(values.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost),
                "fetching");
    return values;
  }

  std::mt19937 generator_{7};
  std::optional<cuda::Stream> stream_;
};

TEST_F(CudaFamilyOps, NormsAreThoseOfTheirFormulas) {
  for (const std::uint32_t dim : {1U, 77U, 256U, 1030U}) {
    const std::uint32_t rows = 5;
    const std::uint32_t stride = dim + 3;
    // A mean of a thousand spreads: taking squares before the mean would lose every digit.
    const auto x = random_floats(std::size_t{rows} * stride, 1000);
    const auto weight = random_floats(dim, 1);
    const auto bias = random_floats(dim);
    const auto device_weight = upload(weight);
    const auto device_bias = upload(bias);
    const std::vector<std::uint32_t> chosen = {4, 0, 2};
    const auto device_chosen = upload(chosen);
    for (const bool layer : {false, true}) {
      const cuda::Norm norm{device_weight.as<float>(), layer ? device_bias.as<float>() : nullptr,
                            1e-2F};
      const auto device_x = upload(x);
      const cuda::DeviceBuffer y(chosen.size() * dim * sizeof(float));
      cuda::launch_norm(norm,
                        {device_x.as<float>(), stride, y.as<float>(), dim, 3, dim,
                         device_chosen.as<std::uint32_t>()},
                        *stream_);
      cuda::launch_norm(
          norm, {device_x.as<float>(), stride, device_x.as<float>(), stride, rows, dim}, *stream_);
      const auto got = fetch(y.as<float>(), chosen.size() * dim);
      const auto in_place = fetch(device_x.as<float>(), x.size());
      for (std::size_t i = 0; i < chosen.size(); ++i) {
        const float* const row = x.data() + std::size_t{chosen[i]} * stride;
        double mean = 0;
        for (std::uint32_t k = 0; k < dim && layer; ++k) mean += row[k] / static_cast<double>(dim);
        double squares = 0;
        for (std::uint32_t k = 0; k < dim; ++k) squares += std::pow(row[k] - mean, 2);
        const double scale = 1 / std::sqrt(squares / dim + static_cast<double>(norm.epsilon));
        for (std::uint32_t k = 0; k < dim; ++k) {
          const double right = (row[k] - mean) * scale * weight[k] + (layer ? bias[k] : 0.0F);
          EXPECT_NEAR(got[i * dim + k], right, 2e-3) << dim << (layer ? " layer" : " rms");
          EXPECT_EQ(in_place[chosen[i] * stride + k], got[i * dim + k]);
        }
      }
      // What lies between the rows stays.
      for (std::uint32_t k = dim; k < stride; ++k) EXPECT_EQ(in_place[k], x[k]);
    }
  }
}

TEST_F(CudaFamilyOps, BranchesAreNormedAndScaledAsTheyAreAdded) {
  const std::uint32_t rows = 3;
  const std::uint32_t dim = 301;
  const auto x = random_floats(std::size_t{rows} * dim);
  const auto branch = random_floats(x.size(), 0, 4);
  const auto weight = random_floats(dim, 1);
  const auto device_branch = upload(branch);
  const auto device_weight = upload(weight);
  for (const bool normed : {false, true}) {
    const auto to = upload(x);
    cuda::launch_add_branch(device_branch.as<float>(),
                            {normed ? device_weight.as<float>() : nullptr, nullptr, 1e-5F}, 0.3F,
                            rows, dim, to.as<float>(), *stream_);
    const auto got = fetch(to.as<float>(), x.size());
    for (std::uint32_t row = 0; row < rows; ++row) {
      double squares = 0;
      for (std::uint32_t i = 0; i < dim; ++i) squares += std::pow(branch[row * dim + i], 2);
      for (std::uint32_t i = 0; i < dim; ++i) {
        const std::size_t at = row * dim + i;
        const double y = normed ? branch[at] / std::sqrt(squares / dim + 1e-5) * weight[i]
                                : static_cast<double>(branch[at]);
        EXPECT_NEAR(got[at], x[at] + 0.3 * y, 1e-5);
      }
    }
  }
}

TEST_F(CudaFamilyOps, ActivationsAndCapsAreThoseOfTheirFormulas) {
  auto x = random_floats(1001, 0, 5);
  x[0] = 0;
  x[1] = 6e4F;
  x[2] = -6e4F;
  const auto up = random_floats(x.size());
  const auto device_up = upload(up);
  for (const Activation activation : {Activation::silu, Activation::gelu_tanh}) {
    for (const bool gated : {false, true}) {
      const auto gate = upload(x);
      cuda::launch_activate(activation, gate.as<float>(), gated ? device_up.as<float>() : nullptr,
                            x.size(), *stream_);
      const auto got = fetch(gate.as<float>(), x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double value = static_cast<double>(x[i]);
        const double y =
            activation == Activation::silu ? value / (1 + std::exp(-value)) : gelu(value);
        const double right = gated ? y * static_cast<double>(up[i]) : y;
        EXPECT_NEAR(got[i], right, 1e-6 + 1e-6 * std::abs(right)) << x[i];
      }
    }
  }
  for (const float cap : {0.0F, 30.0F}) {
    const auto logits = upload(x);
    cuda::launch_cap_logits(logits.as<float>(), x.size(), 2.5F, cap, *stream_);
    const auto got = fetch(logits.as<float>(), x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double scaled = 2.5 * static_cast<double>(x[i]);
      const double right = cap == 0 ? scaled : cap * std::tanh(scaled / cap);
      EXPECT_NEAR(got[i], right, 1e-5 + 1e-6 * std::abs(right)) << x[i];
    }
  }
}

// A mixture of a shape that no tile divides.
class CudaExperts : public CudaFamilyOps {
 protected:
  static constexpr MixtureSpec kSpec{.count = 37, .used = 3, .ffn_dim = 40, .normalised = true};
  static constexpr std::uint32_t kDim = 72;

  // The host's copy of what the kernels decide.
  struct Routing {
    std::vector<std::uint32_t> experts, slots, sources;
    std::vector<float> weights;
    std::vector<cuda::ExpertTile> tiles;
  };
  Routing route(const MixtureSpec& spec, const cuda::MixtureScratch& space,
                const std::vector<float>& scores, std::uint32_t rows, std::uint32_t tile_rows) {
    cuda::check(cudaMemcpy(space.scores, scores.data(), scores.size() * sizeof(float),
                           cudaMemcpyHostToDevice),
                "uploading");
    cuda::launch_choose_experts(spec, space.scores, rows, space.rows, *stream_);
    cuda::launch_group_by_expert(spec, rows, tile_rows, space.rows, *stream_);
    const std::size_t slots = std::size_t{rows} * spec.used;
    return {fetch(space.rows.experts, slots), fetch(space.rows.slots, slots),
            fetch(space.rows.sources, slots), fetch(space.rows.weights, slots),
            fetch(space.rows.tiles, fetch(space.rows.tile_count, 1)[0])};
  }
  static DecoderSpec spec_of(const MixtureSpec& mixture) {
    DecoderSpec spec;
    spec.dim = kDim;
    spec.layers.resize(1);
    spec.layers[0].mixture = mixture;
    return spec;
  }
};

TEST_F(CudaExperts, AreChosenByProbabilityAndOfEqualsTheFirst) {
  for (const bool normalised : {false, true}) {
    MixtureSpec spec = kSpec;
    spec.normalised = normalised;
    const std::uint32_t rows = 19;
    auto scores = random_floats(std::size_t{rows} * spec.count);
    std::fill_n(scores.begin(), spec.count, -3.0F);  // all equal
    scores[spec.count + 5] = scores[spec.count + 36] = 9;
    const cuda::MixtureScratch space(spec_of(spec), {.max_rows = rows});
    const Routing got = route(spec, space, scores, rows, 8);
    for (std::uint32_t row = 0; row < rows; ++row) {
      std::vector<std::uint32_t> order(spec.count);
      for (std::uint32_t i = 0; i < spec.count; ++i) order[i] = i;
      const float* const score = scores.data() + std::size_t{row} * spec.count;
      std::stable_sort(order.begin(), order.end(),
                       [&](auto a, auto b) { return score[a] > score[b]; });
      double divisor = 0;
      for (std::uint32_t i = 0; i < (normalised ? spec.used : spec.count); ++i) {
        divisor += std::exp(static_cast<double>(score[order[i]]));
      }
      for (std::uint32_t rank = 0; rank < spec.used; ++rank) {
        const std::size_t at = std::size_t{row} * spec.used + rank;
        EXPECT_EQ(got.experts[at], order[rank]) << row;
        EXPECT_NEAR(got.weights[at], std::exp(static_cast<double>(score[order[rank]])) / divisor,
                    1e-6);
      }
    }
  }
}

TEST_F(CudaExperts, HaveTheirRowsOneAfterAnotherInTiles) {
  for (const std::uint32_t rows : {1U, 5U, 301U}) {
    for (const std::uint32_t tile_rows : {1U, 8U, 16U, 64U}) {
      const cuda::MixtureScratch space(spec_of(kSpec), {.max_rows = rows});
      const auto scores = random_floats(std::size_t{rows} * kSpec.count);
      const Routing got = route(kSpec, space, scores, rows, tile_rows);
      const std::uint32_t slots = rows * kSpec.used;
      EXPECT_LE(got.tiles.size(), cuda::most_tiles(slots, kSpec.count, tile_rows));
      std::vector<std::uint32_t> expert_of(slots, ~0U);
      std::uint32_t next = 0;
      for (const cuda::ExpertTile& tile : got.tiles) {
        EXPECT_EQ(tile.first, next);
        EXPECT_TRUE(tile.rows > 0 && tile.rows <= tile_rows);
        for (std::uint32_t i = 0; i < tile.rows; ++i) expert_of[next++] = tile.expert;
      }
      EXPECT_EQ(next, slots);
      EXPECT_TRUE(std::is_sorted(expert_of.begin(), expert_of.end()));
      std::set<std::uint32_t> taken;
      for (std::uint32_t i = 0; i < slots; ++i) {
        taken.insert(got.slots[i]);
        ASSERT_LT(got.slots[i], slots);
        EXPECT_EQ(got.sources[got.slots[i]], i / kSpec.used);
        EXPECT_EQ(expert_of[got.slots[i]], got.experts[i]);
      }
      EXPECT_EQ(taken.size(), slots);
    }
  }
}

TEST_F(CudaExperts, MultiplyTheirRowsAndAreAddedUpByWeight) {
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::q8_0,
                                 ElementType::q4_k, ElementType::q5_0}) {
    // Rows of 264 or 288 and 512 columns: no multiple of a step in depth, where the type allows.
    const std::uint32_t dim = type == ElementType::q4_k  ? 512
                              : type == ElementType::f32 ? 264
                                                         : 288;
    const MixtureSpec spec{.count = 11, .used = 2, .ffn_dim = 256, .normalised = true};
    const RandomDecoder model(
        {.layers = 1, .heads = 8, .dim = dim, .ffn_dim = dim, .type = type, .mixture = spec}, 3);
    const cuda::DeviceWeights weights(model.decoder(), cuda::WeightSource::file);
    const Matrix& w = model.decoder().weights.layers[0].feed_forward.mixture.gate;
    std::vector<float> values(std::size_t{w.rows} * w.cols);
    dequantize(w.type, w.data, values);
    for (const std::uint32_t rows : {1U, 13U, 150U}) {
      const auto x = random_floats(std::size_t{rows} * dim);
      const auto device_x = upload(x);
      const cuda::DeviceBuffer half(x.size() * 2);
      const cuda::DeviceBuffer scale(rows * sizeof(float));
      const cuda::HalfRows half_rows{half.as<__half>(), scale.as<float>()};
      cuda::launch_to_half(device_x.as<float>(), rows, dim, half_rows, *stream_);
      const cuda::MixtureScratch space(spec_of(spec), {.max_rows = rows});
      const auto scores = random_floats(std::size_t{rows} * spec.count);
      const std::uint32_t slots = rows * spec.used;
      const cuda::DeviceBuffer y(std::size_t{slots} * spec.ffn_dim * sizeof(float));
      for (const auto& [tile_rows, exact] :
           {std::pair{1U, true}, std::pair{cuda::kExpertRowsF32, true},
            std::pair{cuda::kFewExpertRows, false}, std::pair{cuda::kManyExpertRows, false}}) {
        const Routing routing = route(spec, space, scores, rows, tile_rows);
        const cuda::ExpertProduct product{weights.mixtures()[0].gate,
                                          spec.ffn_dim,
                                          space.rows.sources,
                                          space.rows.tiles,
                                          space.rows.tile_count,
                                          cuda::most_tiles(slots, spec.count, tile_rows),
                                          tile_rows,
                                          y.as<float>()};
        if (exact) {
          cuda::launch_experts_f32(product, device_x.as<float>(), *stream_);
        } else {
          cuda::launch_experts_half(product, half_rows, *stream_);
        }
        const auto got = fetch(y.as<float>(), std::size_t{slots} * spec.ffn_dim);
        double largest = 0;
        for (std::uint32_t choice = 0; choice < slots; ++choice) {
          const float* const row = x.data() + std::size_t{choice / spec.used} * dim;
          for (std::uint32_t out = 0; out < spec.ffn_dim; ++out) {
            const float* const weight =
                values.data() + (std::size_t{routing.experts[choice]} * spec.ffn_dim + out) * dim;
            double sum = 0;
            for (std::uint32_t i = 0; i < dim; ++i) {
              sum += static_cast<double>(weight[i]) * static_cast<double>(row[i]);
            }
            largest = std::max(
                largest,
                std::abs(got[std::size_t{routing.slots[choice]} * spec.ffn_dim + out] - sum));
          }
        }
        EXPECT_LE(largest, exact ? 1e-5 : 5e-3)
            << traits(type).name << ", " << rows << " rows in tiles of " << tile_rows;
      }
    }
  }
}

TEST_F(CudaExperts, OfOneRowAreThoseOfTheirFormulas) {
  for (const ElementType type :
       {ElementType::f32, ElementType::q8_0, ElementType::q4_k, ElementType::q5_0}) {
    const std::uint32_t dim = type == ElementType::q4_k ? 512 : 288;
    const MixtureSpec spec{.count = 11, .used = 3, .ffn_dim = 256, .normalised = true};
    const RandomDecoder model(
        {.layers = 1, .heads = 8, .dim = dim, .ffn_dim = dim, .type = type, .mixture = spec}, 3);
    const cuda::DeviceWeights weights(model.decoder(), cuda::WeightSource::file);
    const MixtureWeights& w = model.decoder().weights.layers[0].feed_forward.mixture;
    const auto values = [](const Matrix& matrix) {
      std::vector<float> result(std::size_t{matrix.rows} * matrix.cols);
      dequantize(matrix.type, matrix.data, result);
      return result;
    };
    const auto gate = values(w.gate);
    const auto up = values(w.up);
    const auto down = values(w.down);
    const auto dot = [](const float* a, const float* b, std::uint32_t count) {
      double sum = 0;
      for (std::uint32_t i = 0; i < count; ++i) {
        sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
      }
      return sum;
    };
    const auto x = random_floats(dim);
    const auto before = random_floats(dim);
    const std::vector<std::uint32_t> experts = {7, 0, 10};
    const std::vector<float> shares = {0.5F, 0.3F, 0.2F};
    const auto device_x = upload(x);
    const auto device_experts = upload(experts);
    const auto device_shares = upload(shares);
    const std::vector<float> shared_score = {0.4F};
    const auto share = upload(shared_score);
    const cuda::DeviceMixture& m = weights.mixtures()[0];
    const cuda::RowExperts row{m.gate,
                               m.up,
                               m.down,
                               device_experts.as<std::uint32_t>(),
                               device_shares.as<float>(),
                               spec.used,
                               spec.ffn_dim};
    const cuda::DeviceBuffer hidden(std::size_t{spec.used} * spec.ffn_dim * sizeof(float));
    cuda::launch_row_experts_hidden(row, Activation::silu, device_x.as<float>(), hidden.as<float>(),
                                    *stream_);
    const auto got = fetch(hidden.as<float>(), std::size_t{spec.used} * spec.ffn_dim);
    for (std::size_t rank = 0; rank < spec.used; ++rank) {
      for (std::size_t i = 0; i < spec.ffn_dim; ++i) {
        const std::size_t at = (experts[rank] * spec.ffn_dim + i) * dim;
        const double g = dot(gate.data() + at, x.data(), dim);
        const double right = g / (1 + std::exp(-g)) * dot(up.data() + at, x.data(), dim);
        EXPECT_NEAR(got[rank * spec.ffn_dim + i], right, 5e-3 + 5e-3 * std::abs(right));
      }
    }
    for (const bool shared : {false, true}) {
      const auto branch = upload(before);
      cuda::launch_row_experts_down(row, hidden.as<float>(), shared ? share.as<float>() : nullptr,
                                    dim, branch.as<float>(), *stream_);
      const auto sums = fetch(branch.as<float>(), dim);
      for (std::size_t i = 0; i < dim; ++i) {
        double right = shared ? before[i] / (1 + std::exp(-0.4)) : 0.0;
        for (std::size_t rank = 0; rank < spec.used; ++rank) {
          right += static_cast<double>(shares[rank]) *
                   dot(down.data() + (experts[rank] * dim + i) * spec.ffn_dim,
                       got.data() + rank * spec.ffn_dim, spec.ffn_dim);
        }
        EXPECT_NEAR(sums[i], right, 5e-3);
      }
    }
  }
}

TEST_F(CudaExperts, OfAFewRowsAreScoredInF32) {
  for (const std::uint32_t dim : {264U, 2052U}) {
    const RandomDecoder model({.layers = 1,
                               .heads = 8,
                               .dim = dim,
                               .ffn_dim = 64,
                               .mixture = {.count = 37, .used = 2, .ffn_dim = 8}});
    const cuda::DeviceWeights weights(model.decoder(), cuda::WeightSource::file);
    const Matrix& w = model.decoder().weights.layers[0].feed_forward.mixture.router;
    std::vector<float> values(std::size_t{w.rows} * w.cols);
    dequantize(w.type, w.data, values);
    for (const std::uint32_t rows : {1U, 6U}) {
      const auto x = random_floats(std::size_t{rows} * dim);
      const auto device_x = upload(x);
      const cuda::DeviceBuffer scores(std::size_t{rows} * w.rows * sizeof(float));
      cuda::launch_route_few(weights.mixtures()[0].router, device_x.as<float>(), rows,
                             scores.as<float>(), *stream_);
      const auto got = fetch(scores.as<float>(), std::size_t{rows} * w.rows);
      for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t out = 0; out < w.rows; ++out) {
          double right = 0;
          for (std::size_t i = 0; i < dim; ++i) {
            right +=
                static_cast<double>(values[out * dim + i]) * static_cast<double>(x[row * dim + i]);
          }
          EXPECT_NEAR(got[row * w.rows + out], right, 1e-4);
        }
      }
    }
  }
}

TEST_F(CudaFamilyOps, BranchesAreAddedAndNormedInOneKernelAsInTwo) {
  const std::uint32_t rows = 3;
  const std::uint32_t dim = 616;
  const auto x = random_floats(std::size_t{rows} * dim);
  const auto branch = upload(random_floats(std::size_t{rows} * dim));
  const auto weights = upload(random_floats(2 * std::size_t{dim}, 1));
  const cuda::Norm post{weights.as<float>(), nullptr, 1e-5F};
  const cuda::Norm next{weights.as<float>() + dim, nullptr, 1e-5F};
  std::vector<std::vector<float>> sums;
  std::vector<std::vector<std::uint16_t>> halves;
  for (const bool joined : {false, true}) {
    const auto device_x = upload(x);
    const cuda::DeviceBuffer half(x.size() * 2);
    const cuda::DeviceBuffer scale(rows * sizeof(float));
    const cuda::HalfRows to{half.as<__half>(), scale.as<float>()};
    if (joined) {
      cuda::launch_add_branch_to_half(branch.as<float>(), post, 0.7F, rows, dim,
                                      device_x.as<float>(), next, to, *stream_);
    } else {
      cuda::launch_add_branch(branch.as<float>(), post, 0.7F, rows, dim, device_x.as<float>(),
                              *stream_);
      cuda::launch_norm_to_half(next, device_x.as<float>(), rows, dim, to, *stream_);
    }
    sums.push_back(fetch(device_x.as<float>(), x.size()));
    halves.push_back(fetch(half.as<std::uint16_t>(), x.size()));
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(sums[0][i], sums[1][i], 1e-5);
    EXPECT_LE(std::abs(halves[0][i] - halves[1][i]), 2);  // in units of the last place
  }
}

TEST_F(CudaExperts, OutputsAreAddedUpByWeightAndTheSharedOneByItsShare) {
  const std::uint32_t rows = 21;
  const cuda::MixtureScratch space(spec_of(kSpec), {.max_rows = rows});
  const Routing routing =
      route(kSpec, space, random_floats(std::size_t{rows} * kSpec.count), rows, 8);
  const auto outputs = random_floats(std::size_t{rows} * kSpec.used * kDim);
  const auto share = random_floats(rows);
  const auto before = random_floats(std::size_t{rows} * kDim);
  const auto device_outputs = upload(outputs);
  const auto device_share = upload(share);
  for (const bool shared : {false, true}) {
    const auto branch = upload(before);
    cuda::launch_combine_experts(kSpec, space.rows, device_outputs.as<float>(),
                                 shared ? device_share.as<float>() : nullptr, rows, kDim,
                                 branch.as<float>(), *stream_);
    const auto got = fetch(branch.as<float>(), before.size());
    for (std::uint32_t row = 0; row < rows; ++row) {
      for (std::uint32_t i = 0; i < kDim; ++i) {
        double right =
            shared ? before[row * kDim + i] / (1 + std::exp(-static_cast<double>(share[row])))
                   : 0.0;
        for (std::uint32_t rank = 0; rank < kSpec.used; ++rank) {
          const std::uint32_t choice = row * kSpec.used + rank;
          right += static_cast<double>(routing.weights[choice]) *
                   static_cast<double>(outputs[std::size_t{routing.slots[choice]} * kDim + i]);
        }
        EXPECT_NEAR(got[row * kDim + i], right, 1e-5);
      }
    }
  }
}

}  // namespace
}  // namespace edgerunner::test
