#include <fmt/format.h>
#include <gtest/gtest.h>

#include "backend/cuda/device.h"
#include "support/model_fixture.h"
#include "support/shared_data.h"

// The cuda backend against what Hugging Face transformers computes in float64 for the fixtures.

namespace edgerunner::test {
namespace {

class CudaFixtures : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_available()) GTEST_SKIP() << "no GPU";
    if (!has_shared_data()) GTEST_SKIP() << "reference data not found at " << shared_dir();
  }

  static std::unique_ptr<Executor> make(const ModelFixture& fixture, Precision precision,
                                        KvPrecision kv) {
    return make_cuda_executor(fixture.decoder, {.precision = precision,
                                                .kv = kv,
                                                .max_rows = 512,
                                                .max_logit_rows = 512,
                                                .pages = 16,
                                                .max_context = 512});
  }
};

TEST_F(CudaFixtures, ExactLogitsAreWithin1e4OfThePeak) {
  for (const std::string& name : plain_fixtures()) {
    const ModelFixture fixture = load_fixture(name);
    const auto executor = make(fixture, Precision::exact, KvPrecision::f32);
    const double whole = largest_error(*executor, fixture, 512);
    const double decode = largest_error(*executor, fixture, 1);
    fmt::print("{:24} {:6} exact: {:.2e} of the peak, by decoding {:.2e}\n", name,
               fixture.weight_type, whole, decode);
    EXPECT_LE(whole, 1e-4) << name;
    EXPECT_LE(decode, 1e-4) << name;
  }
}

TEST_F(CudaFixtures, ExactGreedyContinuationsAreIdentical) {
  for (const std::string& name : plain_fixtures()) {
    const ModelFixture fixture = load_fixture(name);
    const auto executor = make(fixture, Precision::exact, KvPrecision::f32);
    EXPECT_EQ(greedy_continuation(*executor, fixture), fixture.greedy) << name;
  }
}

// A quantised activation is off by 1/254 of its block's largest value at most, and f16 by 2^-11;
// the fixtures' random weights spread this over the logits without amplifying it.
TEST_F(CudaFixtures, FastLogitsStayNearTheExactOnes) {
  for (const std::string& name : plain_fixtures()) {
    const ModelFixture fixture = load_fixture(name);
    const auto executor = make(fixture, Precision::fast, KvPrecision::f16);
    const double whole = largest_error(*executor, fixture, 512);
    const double decode = largest_error(*executor, fixture, 1);
    fmt::print("{:24} {:6} fast: {:.2e} of the peak, by decoding {:.2e}\n", name,
               fixture.weight_type, whole, decode);
    EXPECT_LE(whole, 4e-2) << name;
    EXPECT_LE(decode, 4e-2) << name;
  }
}

TEST_F(CudaFixtures, ExactChunkedPrefillGivesTheSameBits) {
  for (const std::string name :
       {"llama-gqa-untied", "mistral-swa", "qwen3", "llama-gqa-256x1-q4k"}) {
    const ModelFixture fixture = load_fixture(name);
    for (const KvPrecision kv : {KvPrecision::f32, KvPrecision::f16}) {
      const auto executor = make(fixture, Precision::exact, kv);
      const std::uint32_t vocab = fixture.decoder.spec.vocab_size;
      const auto whole = SequenceRunner(*executor, vocab).feed(fixture.prompt, 512);
      for (const std::uint32_t chunk : {1U, 7U}) {
        EXPECT_EQ(SequenceRunner(*executor, vocab).feed(fixture.prompt, chunk), whole)
            << name << " in chunks of " << chunk;
      }
    }
  }
}

TEST_F(CudaFixtures, ExactBatchedSequencesGiveTheBitsOfEachAlone) {
  const ModelFixture fixture = load_fixture("llama-gqa-untied");
  const auto executor = make(fixture, Precision::exact, KvPrecision::f32);
  const std::uint32_t vocab = fixture.decoder.spec.vocab_size;
  const auto alone = SequenceRunner(*executor, vocab).feed(fixture.prompt, 512);
  const auto rows = static_cast<std::uint32_t>(fixture.prompt.size());

  // The same prompt twice in one batch, in pages of their own that lie backwards.
  const std::vector<PageId> first = {9, 8, 7, 6, 5, 4, 3, 2};
  const std::vector<PageId> second = {15, 14, 13, 12, 11, 10, 1, 0};
  const std::vector<SequenceSlice> slices = {{rows, 0, first}, {rows, 0, second}};
  std::vector<TokenId> tokens = fixture.prompt;
  tokens.insert(tokens.end(), fixture.prompt.begin(), fixture.prompt.end());
  const std::vector<std::uint32_t> wanted = {rows - 1, 2 * rows - 1};
  std::vector<float> logits(2 * std::size_t{vocab});
  executor->forward({tokens, slices, wanted}, logits);
  EXPECT_EQ(std::vector<float>(logits.begin(), logits.begin() + vocab), alone.back());
  EXPECT_EQ(std::vector<float>(logits.begin() + vocab, logits.end()), alone.back());
}

TEST_F(CudaFixtures, AForwardPassAllocatesNothing) {
  const ModelFixture fixture = load_fixture("llama-gqa-256x1-q80");
  for (const Precision precision : {Precision::exact, Precision::fast}) {
    const auto executor = make(fixture, precision, KvPrecision::f16);
    const std::uint64_t before = cuda::DeviceBuffer::allocations();
    SequenceRunner(*executor, fixture.decoder.spec.vocab_size).feed(fixture.prompt, 7);
    EXPECT_EQ(cuda::DeviceBuffer::allocations(), before);
  }
}

}  // namespace
}  // namespace edgerunner::test
