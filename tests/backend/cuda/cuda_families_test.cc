#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "backend/cpu/sequences.h"
#include "backend/cuda/device.h"
#include "backend/executor.h"
#include "cuda/small_shape.h"
#include "support/random_decoder.h"

// What families have beyond llama, in small random models of shapes that no tile divides, against
// the reference backend: in exact, and in fast by one row, a few and many.

namespace edgerunner::test {
namespace {

constexpr std::uint32_t kPages = 4;
constexpr std::uint32_t kVocab = 203;

struct Family {
  std::string name;
  DecoderShape shape;
  void (*adjust)(DecoderSpec& spec) = [](DecoderSpec&) {};
};

// Of Q8_0, which every fast path takes, unless said otherwise.
std::vector<Family> families() {
  const DecoderShape shape = small_shape(kVocab);
  std::vector<Family> all;
  const auto add = [&](const char* name) -> Family& {
    return all.emplace_back(Family{name, shape});
  };

  DecoderShape& starcoder = add("LayerNorm, no gate, GELU, biases").shape;
  starcoder.layer_norms = true;
  starcoder.gated = false;
  starcoder.activation = Activation::gelu_tanh;
  starcoder.biases = true;
  starcoder.head_dim = 80;
  starcoder.rope = RopeLayout::half_split;

  Family& gemma = add("norms around blocks, GeGLU, caps, two rotations and none");
  gemma.shape.post_norms = true;
  gemma.shape.activation = Activation::gelu_tanh;
  gemma.shape.head_dim = 256;
  gemma.shape.head_norms = true;
  gemma.adjust = [](DecoderSpec& spec) {
    spec.embedding_scale = std::sqrt(static_cast<float>(spec.dim));
    spec.logit_cap = 3;
    spec.local_rope = spec.rope;
    for (double& frequency : spec.local_rope.inverse_frequencies) frequency *= 0.3;
    spec.layers[0].rope = LayerRope::local;
    spec.layers[0].sliding_window = 37;
    spec.layers[1].rope = LayerRope::none;
    for (LayerSpec& layer : spec.layers) layer.attention_cap = 0.7F;
  };

  DecoderShape& olmo = add("norms after blocks alone, norms of whole rows").shape;
  olmo.pre_norms = false;
  olmo.post_norms = true;
  olmo.whole_row_norms = true;

  add("multipliers").adjust = [](DecoderSpec& spec) {
    spec.embedding_scale = 7;
    spec.residual_scale = 0.31F;
    spec.logit_scale = 0.2F;
  };

  Family& stablelm = add("LayerNorm with a gate, a part of a head rotated");
  stablelm.shape.layer_norms = true;
  stablelm.shape.rope = RopeLayout::half_split;
  stablelm.adjust = [](DecoderSpec& spec) { spec.rope.inverse_frequencies.resize(13); };

  add("experts").shape.mixture = {.count = 7, .used = 2, .ffn_dim = 96, .normalised = true};
  add("experts and a shared one").shape.mixture = {
      .count = 40, .used = 5, .ffn_dim = 160, .shared_ffn_dim = 224};
  Family& many = add("experts in F32");
  many.shape.type = ElementType::f32;
  many.shape.mixture = {.count = 33, .used = 3, .ffn_dim = 40};
  return all;
}

class CudaFamilies : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_available()) GTEST_SKIP() << "no GPU";
  }

  static ExecutorOptions options(Precision precision, KvPrecision kv) {
    return {.precision = precision,
            .kv = kv,
            .max_rows = 160,
            .max_logit_rows = 160,
            .pages = kPages,
            .max_context = kPages * kPageTokens};
  }

  // Each row's difference, as a fraction of its norm.
  static std::vector<double> errors(const LogitRows& rows, const LogitRows& expected) {
    std::vector<double> result;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      double difference = 0;
      double norm = 0;
      for (std::size_t i = 0; i < rows[row].size(); ++i) {
        const auto right = static_cast<double>(expected[row][i]);
        difference += std::pow(static_cast<double>(rows[row][i]) - right, 2);
        norm += right * right;
      }
      const double error = std::sqrt(difference / norm);
      result.push_back(std::isfinite(error) ? error : INFINITY);
    }
    return result;
  }
};

TEST_F(CudaFamilies, AgreeWithTheReference) {
  for (const Family& family : families()) {
    const RandomDecoder model(family.shape, 5);
    Decoder decoder = model.decoder();
    family.adjust(decoder.spec);
    const auto tokens = model.tokens(150, 3);
    const auto pages = page_range(0, kPages);
    const auto reference =
        make_reference_executor(decoder, options(Precision::exact, KvPrecision::f32));
    const LogitRows right = run(*reference, kVocab, tokens, 160, pages);
    const auto exact = make_cuda_executor(decoder, options(Precision::exact, KvPrecision::f32));
    const auto fast = make_cuda_executor(decoder, options(Precision::fast, KvPrecision::f16));
    for (const std::uint32_t chunk : {1U, 5U, 70U, 150U}) {
      const auto off = errors(run(*exact, kVocab, tokens, chunk, pages), right);
      const double largest = *std::max_element(off.begin(), off.end());
      const auto fast_off = errors(run(*fast, kVocab, tokens, chunk, pages), right);
      // Where a row's second and third expert are almost equal, f16 may choose the other one: that
      // row is off by more. So the rows' mean is bounded.
      const double mean = std::accumulate(fast_off.begin(), fast_off.end(), 0.0) /
                          static_cast<double>(tokens.size());
      fmt::print("{}: chunks of {}: exact {:.1e}, fast on average {:.1e}, at most {:.1e}\n",
                 family.name, chunk, largest, mean,
                 *std::max_element(fast_off.begin(), fast_off.end()));
      EXPECT_LE(largest, 2e-5) << family.name << " chunk " << chunk;
      EXPECT_LE(mean, 0.05) << family.name << " chunk " << chunk;
    }
  }
}

// Every kernel of them once on models so small that a checker of memory accesses gets through
// (scripts/gpu_check.sh).
TEST_F(CudaFamilies, SmallRunsEveryPath) {
  for (const Family& family : families()) {
    const RandomDecoder model(family.shape, 6);
    Decoder decoder = model.decoder();
    family.adjust(decoder.spec);
    const auto tokens = model.tokens(75, 4);
    for (const Precision precision : {Precision::exact, Precision::fast}) {
      const auto executor = make_cuda_executor(decoder, options(precision, KvPrecision::f16));
      std::vector<Sequence> sequences = {{tokens, page_range(0, 2), 0, {}},
                                         {tokens, page_range(2, 2), 0, {}}};
      for (const std::vector<std::uint32_t>& counts :
           {std::vector{66U, 0U}, {1U, 3U}, {1U, 0U}, {0U, 70U}}) {
        step(*executor, kVocab, sequences, counts);
      }
      for (const Sequence& sequence : sequences) {
        for (const std::vector<float>& row : sequence.logits) {
          EXPECT_TRUE(std::all_of(row.begin(), row.end(), [](float x) { return std::isfinite(x); }))
              << family.name;
        }
      }
    }
  }
}

TEST_F(CudaFamilies, TakeTheMemoryThatWasAnnounced) {
  for (const Family& family : families()) {
    const RandomDecoder model(family.shape, 6);
    Decoder decoder = model.decoder();
    family.adjust(decoder.spec);
    ExecutorOptions wanted = options(Precision::fast, KvPrecision::f16);
    wanted.max_rows = 16384;
    make_cuda_executor(decoder, wanted);  // loads the kernels' code, which is not its own
    const std::uint64_t before = cuda::device_properties().free_bytes;
    const auto executor = make_cuda_executor(decoder, wanted);
    const auto taken = static_cast<double>(before - cuda::device_properties().free_bytes);
    const MemoryNeed need = cuda_memory_need(decoder.spec, wanted);
    const auto announced =
        static_cast<double>(cuda_weight_bytes(decoder) + need.cache_bytes + need.scratch_bytes);
    // Allocations are rounded up to 2 MiB, or share it.
    EXPECT_NEAR(taken, announced, 0.05 * announced + 30 * 1048576.0) << family.name;
  }
}

}  // namespace
}  // namespace edgerunner::test
