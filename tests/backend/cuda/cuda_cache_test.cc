#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "backend/cuda/buffers.h"
#include "backend/cuda/ops.h"
#include "support/model_fixture.h"
#include "support/shared_data.h"

// What each precision of the cache keeps of keys and values, and what that does to the logits.

namespace edgerunner::test {
namespace {

// Of an e4m3 code: sign, 4 bits of exponent (bias 7), 3 of mantissa; no infinities.
double from_e4m3(std::uint8_t code) {
  const int exponent = code >> 3 & 15;
  const double mantissa = code & 7;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

TEST(E4m3, IsWhatTheFormatSays) {
  EXPECT_EQ(from_e4m3(0x7E), 448.0);
  EXPECT_EQ(from_e4m3(0x38), 1.0);
  EXPECT_EQ(from_e4m3(0x01), 0x1p-9);
  EXPECT_EQ(from_e4m3(0xB9), -1.125);
}

class CudaCache : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_available()) GTEST_SKIP() << "no GPU";
  }
};

// Values of magnitudes from 1e-3 to 6e4, through the kernel that writes the cache.
TEST_F(CudaCache, KeepsEachValueWithinItsPrecisionsRounding) {
  constexpr std::uint32_t kRows = 70;  // past a page's border
  constexpr std::uint32_t kKvHeads = 3;
  for (const std::uint32_t head_dim : {64U, 80U, 96U, 128U, 256U}) {
    DecoderSpec spec;
    spec.layers.push_back({.heads = 6, .kv_heads = kKvHeads, .head_dim = head_dim});
    const cuda::AttentionShape shape = cuda::attention_shape(spec.layers[0]);
    std::mt19937 generator(head_dim);
    std::normal_distribution<float> normal;
    std::vector<float> rows(std::size_t{kRows} * shape.row());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::size_t index = i / head_dim;
      const auto head = static_cast<double>(index);
      rows[i] = normal(generator) * static_cast<float>(std::pow(10.0, std::fmod(head, 8) - 3.5));
      rows[i] = std::clamp(rows[i], -6e4F, 6e4F);
    }
    for (const KvPrecision kv : {KvPrecision::f32, KvPrecision::f16, KvPrecision::q8}) {
      const ExecutorOptions options{
          .kv = kv, .max_rows = kRows, .max_logit_rows = 1, .pages = 4, .max_context = 128};
      const cuda::CachePool cache(spec, options);
      cuda::BatchUpload upload(options, cuda::attention_cut(spec));
      const cuda::Stream stream;
      const std::vector<TokenId> tokens(kRows);
      const std::vector<PageId> pages = {3, 1};
      const SequenceSlice slice{kRows, 0, pages};
      const cuda::DeviceBatch batch = upload.upload({tokens, {&slice, 1}, {}}, stream);
      const cuda::DeviceBuffer qkv(rows.size() * sizeof(float));
      cuda::check(
          cudaMemcpyAsync(qkv.as<float>(), rows.data(), qkv.size(), cudaMemcpyHostToDevice, stream),
          "uploading rows");
      cuda::launch_rotate_and_cache(shape, {}, batch, qkv.as<float>(), cache.layer(0), stream);
      stream.synchronize();
      const std::size_t values = std::size_t{options.pages} * kPageTokens * shape.kv_dim();
      std::vector<std::uint8_t> bytes(values * 4);
      std::vector<float> scales(values / head_dim);
      for (const bool keys : {true, false}) {
        const cuda::DeviceCache& layer = cache.layer(0);
        const std::size_t size = kv == KvPrecision::q8 ? 1 : kv == KvPrecision::f16 ? 2 : 4;
        cuda::check(cudaMemcpy(bytes.data(), keys ? layer.keys : layer.values, values * size,
                               cudaMemcpyDeviceToHost),
                    "fetching the cache");
        if (kv == KvPrecision::q8) {
          cuda::check(cudaMemcpy(scales.data(), keys ? layer.key_scales : layer.value_scales,
                                 scales.size() * sizeof(float), cudaMemcpyDeviceToHost),
                      "fetching scales");
        }
        for (std::uint32_t row = 0; row < kRows; ++row) {
          for (std::uint32_t head = 0; head < kKvHeads; ++head) {
            const float* const from = rows.data() + std::size_t{row} * shape.row() + shape.q_dim() +
                                      (keys ? 0 : shape.kv_dim()) + head * head_dim;
            double largest = 0;
            for (std::uint32_t i = 0; i < head_dim; ++i) {
              largest = std::max(largest, std::abs(static_cast<double>(from[i])));
            }
            const std::size_t at =
                (std::size_t{pages[row / kPageTokens]} * kKvHeads + head) * kPageTokens +
                row % kPageTokens;
            for (std::uint32_t i = 0; i < head_dim; ++i) {
              const std::size_t index = at * head_dim + i;
              const double x = from[i];
              double kept = 0;
              double bound = 0;
              if (kv == KvPrecision::f32) {
                kept = reinterpret_cast<const float*>(bytes.data())[index];
              } else if (kv == KvPrecision::f16) {
                kept = static_cast<double>(reinterpret_cast<const _Float16*>(bytes.data())[index]);
                bound = std::max(std::abs(x) * 0x1p-11, 0x1p-25);
              } else {
                kept = from_e4m3(bytes[index]) * scales[at];
                bound = std::max(std::abs(x) * 0x1p-4, largest / 448 * 0x1p-10) * (1 + 1e-6);
              }
              ASSERT_LE(std::abs(kept - x), bound)
                  << name(kv) << " head_dim " << head_dim << " row " << row << " value " << i;
            }
          }
        }
      }
    }
  }
}

// The rounding of a cached value is independent from one to the next; what is left of it in the
// logits of the fixtures is far below its bound for one value (2^-11, 2^-4).
TEST_F(CudaCache, MovesTheLogitsByLittle) {
  for (const std::string& name : all_fixtures()) {
    const ModelFixture fixture = load_fixture(name);
    for (const auto& [kv, bound] :
         {std::pair{KvPrecision::f32, 1e-4}, std::pair{KvPrecision::f16, 2e-3},
          std::pair{KvPrecision::q8, 1.2e-1}}) {
      const auto executor = make_cuda_executor(fixture.decoder, {.precision = Precision::exact,
                                                                 .kv = kv,
                                                                 .max_rows = 128,
                                                                 .max_logit_rows = 128,
                                                                 .pages = 4,
                                                                 .max_context = fixture.context});
      for (const std::uint32_t rows : {512U, 1U}) {
        const double error = largest_error(*executor, fixture, rows);
        fmt::print("{:24} {:4} {}: {:.2e} of the peak\n", name, edgerunner::name(kv), rows, error);
        EXPECT_LE(error, bound) << name;
      }
    }
  }
}

TEST_F(CudaCache, CopiesPagesOfEveryPrecision) {
  if (!has_shared_data()) GTEST_SKIP() << "reference data not found at " << shared_dir();
  const ModelFixture fixture = load_fixture("llama-gqa-untied");
  const std::uint32_t vocab = fixture.decoder.spec.vocab_size;
  const std::span<const TokenId> prompt = fixture.prompt;
  const auto head = static_cast<std::uint32_t>(std::min<std::size_t>(prompt.size() - 1, 40));
  for (const KvPrecision kv : {KvPrecision::f32, KvPrecision::f16, KvPrecision::q8}) {
    const auto executor = make_cuda_executor(fixture.decoder, {.precision = Precision::exact,
                                                               .kv = kv,
                                                               .max_rows = 512,
                                                               .max_logit_rows = 512,
                                                               .pages = 16,
                                                               .max_context = 512});
    SequenceRunner runner(*executor, vocab);
    runner.feed(prompt.first(head), 512);
    executor->copy_page(0, 12, head);
    const std::vector<PageId> pages = {12, 13, 14};
    const SequenceSlice slice{1, head, pages};
    const std::uint32_t wanted = 0;
    std::vector<float> logits(vocab);
    executor->forward({prompt.subspan(head, 1), {&slice, 1}, {&wanted, 1}}, logits);
    EXPECT_EQ(logits, runner.feed(prompt.subspan(head, 1), 1).back()) << name(kv);
  }
}

}  // namespace
}  // namespace edgerunner::test
