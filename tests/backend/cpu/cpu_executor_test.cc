#include "backend/cpu/cpu_executor.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "backend/cpu/allocation_count.h"
#include "backend/cpu/sequences.h"
#include "edgerunner/error.h"
#include "support/machine_isas.h"
#include "support/random_decoder.h"

namespace edgerunner::test {
namespace {

const DecoderShape kShapes[] = {
    {},
    {.heads = 1, .kv_heads = 1, .head_dim = 8, .dim = 24, .ffn_dim = 40, .vocab = 33},
    {.heads = 7, .kv_heads = 1, .head_dim = 96, .biases = true},
    {.heads = 6, .kv_heads = 3, .head_dim = 80, .head_norms = true, .rope = RopeLayout::half_split},
    {.heads = 8, .kv_heads = 1, .head_dim = 128, .window = 33},
    {.layers = 1, .heads = 2, .kv_heads = 2, .head_dim = 256, .rope = RopeLayout::half_split},
};

double largest_difference(const LogitRows& got, const LogitRows& wanted) {
  double difference = 0;
  double peak = 0;
  for (std::size_t row = 0; row < wanted.size(); ++row) {
    for (std::size_t i = 0; i < wanted[row].size(); ++i) {
      difference = std::max<double>(difference, std::abs(got[row][i] - wanted[row][i]));
      peak = std::max<double>(peak, std::abs(wanted[row][i]));
    }
  }
  return difference / peak;
}

TEST(CpuExecutor, ExactAgreesWithTheReferenceOnAwkwardShapes) {
  for (const DecoderShape& shape : kShapes) {
    const RandomDecoder model(shape);
    ExecutorOptions options{.precision = Precision::exact,
                            .kv = KvPrecision::f32,
                            .threads = 2,
                            .max_rows = 200,
                            .max_logit_rows = 200,
                            .pages = 8,
                            .max_context = 400};
    const auto tokens = model.tokens(300, 7);
    const auto reference = make_reference_executor(model.decoder(), options);
    const LogitRows wanted = run(*reference, shape.vocab, tokens, 200, page_range(0, 7));
    for (const Isa isa : machine_isas()) {
      const auto executor = cpu::make_executor(model.decoder(), options, isa);
      const double error =
          largest_difference(run(*executor, shape.vocab, tokens, 200, page_range(1, 7)), wanted);
      EXPECT_LE(error, 2e-5) << "head_dim " << shape.head_dim << " on " << name(isa);
    }
  }
}

TEST(CpuExecutor, AllocatesNothingInAForwardPass) {
  const RandomDecoder model({.type = ElementType::q8_0});
  for (const Isa isa : machine_isas()) {
    const auto executor = cpu::make_executor(
        model.decoder(),
        {.threads = 2, .max_rows = 128, .max_logit_rows = 4, .pages = 32, .max_context = 1024},
        isa);
    const auto tokens = model.tokens(128, 8);
    const auto pages = page_range(0, 16);
    std::vector<float> logits(4 * 97);
    const std::vector<std::uint32_t> wanted{0, 3, 4, 127};
    const std::vector<std::uint32_t> first{0};
    const std::size_t before = allocation_count();
    for (std::uint32_t start = 0; start < 896; start += 128) {
      const SequenceSlice slice{128, start, pages};
      executor->forward({tokens, {&slice, 1}, wanted}, logits);
    }
    for (std::uint32_t start = 896; start < 900; ++start) {
      const SequenceSlice slice{1, start, pages};
      executor->forward({std::span(tokens).first(1), {&slice, 1}, first}, logits);
    }
    EXPECT_EQ(allocation_count(), before) << name(isa);
  }
}

TEST(CpuExecutor, TellsWhatRuns) {
  const RandomDecoder model({.type = ElementType::q8_0});
  for (const Isa isa : machine_isas()) {
    const auto executor =
        cpu::make_executor(model.decoder(), {.threads = 3, .pages = 1, .max_context = 64}, isa);
    EXPECT_EQ(executor->info().backend, "cpu");
    EXPECT_EQ(executor->info().isa, name(isa));
    EXPECT_EQ(executor->info().threads, 3);
    EXPECT_THAT(executor->info().kernels,
                testing::ElementsAre(
                    testing::StartsWith("Q8_0 decode: "), testing::StartsWith("Q8_0 few rows: "),
                    testing::StartsWith("Q8_0 prefill: "), testing::StartsWith("attention: ")));
  }
}

TEST(CpuExecutor, RefusesABatchBeyondItsLimits) {
  const RandomDecoder model({});
  const auto executor = make_cpu_executor(
      model.decoder(), {.max_rows = 4, .max_logit_rows = 1, .pages = 1, .max_context = 64});
  const auto tokens = model.tokens(5, 9);
  const std::vector<PageId> pages{0};
  const SequenceSlice slice{5, 0, pages};
  EXPECT_THROW(executor->forward({tokens, {&slice, 1}, {}}, {}), Error);
}

TEST(CpuExecutor, NeedsWhatItSays) {
  const RandomDecoder model({});
  const ExecutorOptions options{.kv = KvPrecision::f32, .pages = 10, .max_context = 640};
  const MemoryNeed need = cpu_memory_need(model.decoder().spec, options);
  // 2 layers, 2 KV heads, keys and values of 32 floats.
  EXPECT_EQ(need.cache_bytes, 10U * kPageTokens * 2 * 2 * 2 * 32 * sizeof(float));
  EXPECT_GT(need.scratch_bytes, 512U * (96 + 6 * 32 + 2 * 2 * 32 + 160) * sizeof(float));
}

}  // namespace
}  // namespace edgerunner::test
