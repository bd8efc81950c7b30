#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "arch/shape.h"
#include "backend/cuda/cuda_executor.h"
#include "backend/cuda/device.h"
#include "backend/token_chooser.h"
#include "edgerunner/error.h"

// What the device's memory is asked for, and when.

namespace edgerunner::test {
namespace {

class CudaMemory : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_available()) GTEST_SKIP() << "no GPU";
  }

  static ExecutorOptions options(KvPrecision kv, std::uint32_t context) {
    return {.precision = Precision::fast,
            .kv = kv,
            .max_rows = 512,
            .max_logit_rows = 8,
            .pages = pages_for(context),
            .max_context = context};
  }

  static std::uint64_t free_bytes() { return cuda::device_properties().free_bytes; }
};

TEST_F(CudaMemory, IsWithin5PercentOfWhatWasAnnounced) {
  const Decoder decoder = shape_decoder("llama32-1b", ElementType::q8_0);
  // The first executor loads the kernels' code, which is not its own.
  cuda::make_executor(decoder, options(KvPrecision::f16, 512), cuda::WeightSource::random);
  for (const KvPrecision kv : {KvPrecision::f16, KvPrecision::f32, KvPrecision::q8}) {
    const ExecutorOptions wanted = options(kv, 8192);
    const std::uint64_t before = free_bytes();
    const auto executor = cuda::make_executor(decoder, wanted, cuda::WeightSource::random);
    const auto taken = static_cast<double>(before - free_bytes());
    const MemoryNeed need = cuda_memory_need(decoder.spec, wanted);
    const auto announced =
        static_cast<double>(cuda_weight_bytes(decoder) + need.cache_bytes + need.scratch_bytes);
    fmt::print("{}: announced {:.1f} MiB, taken {:.1f} MiB\n", name(kv), announced / 1048576,
               taken / 1048576);
    EXPECT_NEAR(taken, announced, 0.05 * announced) << name(kv);
  }
}

TEST_F(CudaMemory, IsNotAskedForAfterLoading) {
  const Decoder decoder = shape_decoder("smollm2-135m", ElementType::q8_0);
  const auto executor =
      cuda::make_executor(decoder, options(KvPrecision::f16, 1024), cuda::WeightSource::random);
  const std::uint64_t allocations = cuda::DeviceBuffer::allocations();
  const std::uint64_t before = free_bytes();
  std::vector<PageId> pages(16);
  std::iota(pages.begin(), pages.end(), PageId{0});
  std::vector<float> logits(8 * std::size_t{decoder.spec.vocab_size});
  const auto forward = [&](std::uint32_t rows, std::uint32_t start) {
    const std::vector<TokenId> tokens(rows, 7);
    const SequenceSlice slice{rows, start, pages};
    const std::uint32_t last = rows - 1;
    executor->forward({tokens, {&slice, 1}, {&last, 1}},
                      std::span(logits).first(decoder.spec.vocab_size));
  };
  forward(512, 0);
  forward(3, 512);
  forward(1, 515);
  SamplingOptions sampling;
  sampling.temperature = 0.7F;
  sampling.top_p = 0.9F;
  sampling.repeat_penalty = 1.1F;
  const TokenId token = 7;
  const SequenceSlice slice{1, 516, pages};
  const std::uint32_t first = 0;
  const TokenChoice choice{&sampling, {&token, 1}, 516};
  std::vector<TokenId> chosen(32);
  executor->chooser()->choose({{&token, 1}, {&slice, 1}, {&first, 1}}, {&choice, 1}, 32, chosen);
  executor->copy_page(0, 15, 64);
  // More numbers of sequences than there are graphs of steps.
  const std::vector<TokenId> tokens(8, 7);
  const std::vector<std::uint32_t> wanted = {0, 1, 2, 3, 4, 5, 6, 7};
  for (const bool drawn : {true, false}) {
    sampling.temperature = drawn ? 0.7F : 0.0F;
    for (std::uint32_t rows = 2; rows <= 8; ++rows) {
      std::vector<SequenceSlice> slices;
      for (std::uint32_t i = 0; i < rows; ++i)
        slices.push_back({1, 0, std::span(pages).subspan(i)});
      const std::vector<TokenChoice> choices(rows, TokenChoice{&sampling, {&token, 1}, 1});
      chosen.resize(3 * std::size_t{rows});
      executor->chooser()->choose(
          {std::span(tokens).first(rows), slices, std::span(wanted).first(rows)}, choices, 3,
          chosen);
    }
  }
  EXPECT_EQ(cuda::DeviceBuffer::allocations(), allocations);
  EXPECT_EQ(free_bytes(), before);
}

TEST_F(CudaMemory, RefusesAModelThatDoesNotFitAndShowsTheSum) {
  const Decoder decoder = shape_decoder("llama3-8b", ElementType::q8_0);
  const std::uint64_t allocations = cuda::DeviceBuffer::allocations();
  try {
    // 128 KiB a token: more than any device has.
    cuda::make_executor(decoder, options(KvPrecision::f16, 16U << 20U), cuda::WeightSource::random);
    FAIL() << "it fits";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
    EXPECT_THAT(error.what(), testing::ContainsRegex("weights [0-9]+ MiB \\+ cache [0-9]+ MiB \\+ "
                                                     "scratch [0-9]+ MiB, but [0-9]+ MiB"));
  }
  EXPECT_EQ(cuda::DeviceBuffer::allocations(), allocations);
}

}  // namespace
}  // namespace edgerunner::test
