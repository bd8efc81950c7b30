#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/model_fixture.h"
#include "support/shared_data.h"

namespace edgerunner::test {
namespace {

std::unique_ptr<Executor> make(const ModelFixture& fixture) {
  return make_reference_executor(
      fixture.decoder,
      {.max_rows = 512, .max_logit_rows = 512, .pages = 4, .max_context = fixture.context});
}

TEST(ReferenceFixtures, LogitsAreWithin1e5OfThePeak) {
  for (const std::string& name : all_fixtures()) {
    const ModelFixture fixture = load_fixture(name);
    const double error = largest_error(*make(fixture), fixture, 512);
    fmt::print("{:24} {:6} reference: {:.2e} of the peak\n", name, fixture.weight_type, error);
    EXPECT_LE(error, 1e-5) << name;
  }
}

TEST(ReferenceFixtures, GreedyContinuationsAreIdentical) {
  for (const std::string& name : all_fixtures()) {
    const ModelFixture fixture = load_fixture(name);
    EXPECT_EQ(greedy_continuation(*make(fixture), fixture), fixture.greedy) << name;
  }
}

TEST(ReferenceFixtures, ChunkedPrefillGivesTheSameBits) {
  EDGERUNNER_REQUIRE_SHARED_DATA();
  for (const std::string name :
       {"llama-gqa-untied", "mistral-swa", "qwen3", "gemma3", "qwen2-moe"}) {
    const ModelFixture fixture = load_fixture(name);
    const auto executor = make(fixture);
    const std::uint32_t vocab = fixture.decoder.spec.vocab_size;
    const auto whole = SequenceRunner(*executor, vocab).feed(fixture.prompt, 512);
    for (const std::uint32_t chunk : {1U, 7U}) {
      EXPECT_EQ(SequenceRunner(*executor, vocab).feed(fixture.prompt, chunk), whole)
          << name << " in chunks of " << chunk;
    }
  }
}

}  // namespace
}  // namespace edgerunner::test
