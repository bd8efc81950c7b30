#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backend/cpu/cpu_executor.h"
#include "support/machine_isas.h"
#include "support/model_fixture.h"
#include "support/shared_data.h"

namespace edgerunner::test {
namespace {

std::unique_ptr<Executor> make(const ModelFixture& fixture, Precision precision, KvPrecision kv,
                               Isa isa) {
  return cpu::make_executor(fixture.decoder,
                            {.precision = precision,
                             .kv = kv,
                             .threads = 2,
                             .max_rows = 512,
                             .max_logit_rows = 512,
                             .pages = 4,
                             .max_context = fixture.context},
                            isa);
}

TEST(CpuFixtures, ExactIsWithin1e4OfThePeak) {
  for (const std::string& model : all_fixtures()) {
    const ModelFixture fixture = load_fixture(model);
    for (const Isa isa : machine_isas()) {
      const auto f32 = make(fixture, Precision::exact, KvPrecision::f32, isa);
      const auto f16 = make(fixture, Precision::exact, KvPrecision::f16, isa);
      const double error = largest_error(*f32, fixture, 512);
      fmt::print("{:24} {:5} exact {:7} f32 cache {:.1e}, f16 cache {:.1e} of the peak\n", model,
                 fixture.weight_type, name(isa), error, largest_error(*f16, fixture, 512));
      EXPECT_LE(error, 1e-4) << model << " on " << name(isa);
    }
  }
}

// With the f16 cache of the default. Activations of 8 bits a 32-block cost more than the f32 ones
// that F32 weights get, or the bf16 ones of F16 and BF16.
TEST(CpuFixtures, FastIsWithinItsBounds) {
  for (const std::string& model : all_fixtures()) {
    const ModelFixture fixture = load_fixture(model);
    const std::string& type = fixture.weight_type;
    const double bound = type == "F32" ? 1.5e-3 : type == "F16" || type == "BF16" ? 1.5e-2 : 2.0e-2;
    for (const Isa isa : machine_isas()) {
      const auto fast = make(fixture, Precision::fast, KvPrecision::f16, isa);
      const double error = largest_error(*fast, fixture, 512);
      fmt::print("{:24} {:5} fast {:7} {:.1e} of the peak\n", model, fixture.weight_type, name(isa),
                 error);
      EXPECT_LE(error, bound) << model << " on " << name(isa);
    }
  }
}

// Mean Kullback-Leibler divergence over a fixture's prompt, in nats.
double mean_divergence(Executor& wanted, Executor& got, const ModelFixture& fixture) {
  const std::uint32_t vocab = fixture.decoder.spec.vocab_size;
  const auto p = SequenceRunner(wanted, vocab).feed(fixture.prompt, 512);
  const auto q = SequenceRunner(got, vocab).feed(fixture.prompt, 512);
  const auto log_sum = [](const std::vector<float>& logits) {
    const double top = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float logit : logits) sum += std::exp(logit - top);
    return top + std::log(sum);
  };
  double total = 0;
  for (std::size_t row = 0; row < p.size(); ++row) {
    const double p_sum = log_sum(p[row]);
    const double q_sum = log_sum(q[row]);
    for (std::size_t i = 0; i < vocab; ++i) {
      const double log_p = p[row][i] - p_sum;
      total += std::exp(log_p) * (log_p - (q[row][i] - q_sum));
    }
  }
  return total / static_cast<double>(p.size());
}

// The cache's rounding alone: everything else is f32. Keys and values of 8 bits cost what
// activations of 8 bits do.
TEST(CpuFixtures, AnEightBitCacheIsWithinItsBounds) {
  for (const std::string& model : all_fixtures()) {
    const ModelFixture fixture = load_fixture(model);
    for (const Isa isa : machine_isas()) {
      const auto exact = make(fixture, Precision::exact, KvPrecision::f32, isa);
      const auto q8 = make(fixture, Precision::exact, KvPrecision::q8, isa);
      const double error = largest_error(*q8, fixture, 512);
      const double divergence = mean_divergence(*exact, *q8, fixture);
      fmt::print("{:24} {:5} 8-bit cache {:7} {:.1e} of the peak, divergence {:.1e}\n", model,
                 fixture.weight_type, name(isa), error, divergence);
      EXPECT_LE(error, 2.5e-2) << model << " on " << name(isa);
      EXPECT_LE(divergence, 5e-4) << model << " on " << name(isa);
    }
  }
}

// Experts, windows and norms of every family: a row's logits don't depend on its neighbours.
TEST(CpuFixtures, ChunksOfAnySizeGiveTheSameBits) {
  for (const std::string& model : all_fixtures()) {
    const ModelFixture fixture = load_fixture(model);
    const std::uint32_t vocab = fixture.decoder.spec.vocab_size;
    for (const Precision precision : {Precision::exact, Precision::fast}) {
      const auto executor = make(fixture, precision, KvPrecision::f16, machine_isas().back());
      const auto whole = SequenceRunner(*executor, vocab).feed(fixture.prompt, 512);
      for (const std::uint32_t chunk : {1U, 7U}) {
        EXPECT_EQ(SequenceRunner(*executor, vocab).feed(fixture.prompt, chunk), whole)
            << model << " in chunks of " << chunk;
      }
    }
  }
}

TEST(CpuFixtures, GreedyContinuationsAreIdenticalInExact) {
  for (const std::string& model : all_fixtures()) {
    const ModelFixture fixture = load_fixture(model);
    for (const Isa isa : machine_isas()) {
      EXPECT_EQ(
          greedy_continuation(*make(fixture, Precision::exact, KvPrecision::f32, isa), fixture),
          fixture.greedy)
          << model << " on " << name(isa);
    }
  }
}

}  // namespace
}  // namespace edgerunner::test
