#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>

#include "backend/cpu/sequences.h"
#include "backend/cuda/device.h"
#include "support/model_fixture.h"
#include "support/shared_data.h"

// The cuda backend against what Hugging Face transformers computes in float64 for the fixtures of
// every family.

namespace edgerunner::test {
namespace {

struct Loaded {
  ModelFixture fixture;
  std::unique_ptr<Executor> exact;  // f32 cache
  std::unique_ptr<Executor> fast;   // f16 cache
};

class CudaFixtures : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_available()) GTEST_SKIP() << "no GPU";
    if (!has_shared_data()) {
      fmt::print("only the fixtures of tests/fixtures: reference data not found at {}\n",
                 shared_dir().string());
    }
  }

  static void TearDownTestSuite() { loaded().clear(); }

  static std::unique_ptr<Executor> make(const ModelFixture& fixture, Precision precision,
                                        KvPrecision kv) {
    return make_cuda_executor(fixture.decoder, {.precision = precision,
                                                .kv = kv,
                                                .max_rows = 128,
                                                .max_logit_rows = 128,
                                                .pages = 4,
                                                .max_context = fixture.context});
  }

  // Executors take time to make, most of it for warming up: all tests share them.
  static std::map<std::string, std::unique_ptr<Loaded>>& loaded() {
    static std::map<std::string, std::unique_ptr<Loaded>> all;
    return all;
  }
  static const Loaded& load(const std::string& name) {
    std::unique_ptr<Loaded>& it = loaded()[name];
    if (it == nullptr) {
      it = std::unique_ptr<Loaded>(new Loaded{load_fixture(name), nullptr, nullptr});
      it->exact = make(it->fixture, Precision::exact, KvPrecision::f32);
      it->fast = make(it->fixture, Precision::fast, KvPrecision::f16);
    }
    return *it;
  }

  static LogitRows feed(Executor& executor, const ModelFixture& fixture, std::uint32_t chunk) {
    return SequenceRunner(executor, fixture.decoder.spec.vocab_size).feed(fixture.prompt, chunk);
  }
};

TEST_F(CudaFixtures, ExactLogitsAreWithin1e4OfThePeak) {
  for (const std::string& name : all_fixtures()) {
    const auto& [fixture, exact, fast] = load(name);
    const double whole = largest_error(*exact, fixture, 512);
    const double decode = largest_error(*exact, fixture, 1);
    fmt::print("{:24} {:6} exact: {:.2e} of the peak, by decoding {:.2e}\n", name,
               fixture.weight_type, whole, decode);
    EXPECT_LE(whole, 1e-4) << name;
    EXPECT_LE(decode, 1e-4) << name;
  }
}

TEST_F(CudaFixtures, ExactGreedyContinuationsAreIdentical) {
  for (const std::string& name : all_fixtures()) {
    const auto& [fixture, exact, fast] = load(name);
    EXPECT_EQ(greedy_continuation(*exact, fixture), fixture.greedy) << name;
  }
}

// A quantised activation is off by 1/254 of its block's largest value at most, and f16 by 2^-11;
// the fixtures' random weights spread this over the logits without amplifying it.
TEST_F(CudaFixtures, FastLogitsStayNearTheExactOnes) {
  for (const std::string& name : all_fixtures()) {
    const auto& [fixture, exact, fast] = load(name);
    const double whole = largest_error(*fast, fixture, 512);
    const double few = largest_error(*fast, fixture, 5);
    const double decode = largest_error(*fast, fixture, 1);
    fmt::print("{:24} {:6} fast: {:.2e} of the peak, five by five {:.2e}, by decoding {:.2e}\n",
               name, fixture.weight_type, whole, few, decode);
    EXPECT_LE(whole, 4e-2) << name;
    EXPECT_LE(few, 4e-2) << name;
    EXPECT_LE(decode, 4e-2) << name;
  }
}

// Mean Kullback-Leibler divergence over a fixture's prompt, in nats.
double mean_divergence(const LogitRows& wanted, const LogitRows& got) {
  const auto log_sum = [](const std::vector<float>& logits) {
    const auto top = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
    double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - top);
    return top + std::log(sum);
  };
  double total = 0;
  for (std::size_t row = 0; row < wanted.size(); ++row) {
    const double p_sum = log_sum(wanted[row]);
    const double q_sum = log_sum(got[row]);
    for (std::size_t i = 0; i < wanted[row].size(); ++i) {
      const double log_p = static_cast<double>(wanted[row][i]) - p_sum;
      total += std::exp(log_p) * (log_p - (static_cast<double>(got[row][i]) - q_sum));
    }
  }
  return total / static_cast<double>(wanted.size());
}

TEST_F(CudaFixtures, FastDivergesLittleFromExact) {
  for (const std::string& name : all_fixtures()) {
    const auto& [fixture, exact, fast] = load(name);
    const LogitRows right = feed(*exact, fixture, 512);
    for (const std::uint32_t chunk : {1U, 5U, 512U}) {
      const double divergence = mean_divergence(right, feed(*fast, fixture, chunk));
      fmt::print("{:24} fast in chunks of {}: divergence {:.1e}\n", name, chunk, divergence);
      EXPECT_LE(divergence, 1e-3) << name << " in chunks of " << chunk;
    }
  }
}

TEST_F(CudaFixtures, ExactChunkedPrefillGivesTheSameBits) {
  for (const std::string& name : all_fixtures()) {
    const auto& [fixture, exact, fast] = load(name);
    const auto half_cache = make(fixture, Precision::exact, KvPrecision::f16);
    for (Executor* executor : {exact.get(), half_cache.get()}) {
      const LogitRows whole = feed(*executor, fixture, 512);
      for (const std::uint32_t chunk : {1U, 7U}) {
        EXPECT_EQ(feed(*executor, fixture, chunk), whole) << name << " in chunks of " << chunk;
      }
    }
  }
}

TEST_F(CudaFixtures, ExactBatchedSequencesGiveTheBitsOfEachAlone) {
  for (const std::string& name : all_fixtures()) {
    const auto& [fixture, exact, fast] = load(name);
    const std::uint32_t vocab = fixture.decoder.spec.vocab_size;
    const std::vector<float> alone = feed(*exact, fixture, 512).back();
    const auto rows = static_cast<std::uint32_t>(fixture.prompt.size());

    // The same prompt twice in one batch, each in a page of its own.
    const std::vector<PageId> first = {3};
    const std::vector<PageId> second = {1};
    const std::vector<SequenceSlice> slices = {{rows, 0, first}, {rows, 0, second}};
    std::vector<TokenId> tokens = fixture.prompt;
    tokens.insert(tokens.end(), fixture.prompt.begin(), fixture.prompt.end());
    const std::vector<std::uint32_t> wanted = {rows - 1, 2 * rows - 1};
    std::vector<float> logits(2 * std::size_t{vocab});
    exact->forward({tokens, slices, wanted}, logits);
    EXPECT_EQ(std::vector<float>(logits.begin(), logits.begin() + vocab), alone) << name;
    EXPECT_EQ(std::vector<float>(logits.begin() + vocab, logits.end()), alone) << name;
  }
}

// Embeddings: the hidden states of all rows, after the final norm.
TEST_F(CudaFixtures, HiddenStatesAreTheReferences) {
  for (const std::string& name : all_fixtures()) {
    const Loaded& model = load(name);
    const ModelFixture& fixture = model.fixture;
    const auto reference = make_reference_executor(
        fixture.decoder,
        {.max_rows = 128, .max_logit_rows = 1, .pages = 4, .max_context = fixture.context});
    const std::size_t size = fixture.prompt.size() * fixture.decoder.spec.dim;
    const std::vector<PageId> pages = page_range(0, 4);
    const auto embed = [&](Executor& executor, std::uint32_t rows) {
      const SequenceSlice slice{rows, 0, pages};
      std::vector<float> hidden(size);
      executor.embed({std::span(fixture.prompt).first(rows), {&slice, 1}, {}}, hidden);
      return hidden;
    };
    const auto rows = static_cast<std::uint32_t>(fixture.prompt.size());
    const std::vector<float> right = embed(*reference, rows);
    const float peak = std::abs(*std::max_element(
        right.begin(), right.end(), [](float a, float b) { return std::abs(a) < std::abs(b); }));
    const auto expect_near = [&](const std::vector<float>& got, std::size_t count, float bound) {
      float largest = 0;
      for (std::size_t i = 0; i < count; ++i) {
        largest = std::max(largest, std::abs(got[i] - right[i]));
      }
      EXPECT_LE(largest, bound * peak) << name;
    };
    expect_near(embed(*model.exact, rows), size, 1e-4F);
    expect_near(embed(*model.fast, rows), size, 5e-2F);
    expect_near(embed(*model.fast, 1), fixture.decoder.spec.dim, 5e-2F);
  }
}

TEST_F(CudaFixtures, AForwardPassAllocatesNothing) {
  for (const std::string& name : all_fixtures()) {
    const auto& [fixture, exact, fast] = load(name);
    const std::uint64_t before = cuda::DeviceBuffer::allocations();
    for (Executor* executor : {exact.get(), fast.get()}) feed(*executor, fixture, 7);
    EXPECT_EQ(cuda::DeviceBuffer::allocations(), before) << name;
  }
}

}  // namespace
}  // namespace edgerunner::test
