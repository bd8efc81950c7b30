// LoRA adapters: logits against Hugging Face PEFT's, and the same bits however rows are batched.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <optional>

#include "backend/cpu/cpu_executor.h"
#include "backend/cpu/matmul.h"
#include "edgerunner/error.h"
#include "support/lora_fixture.h"
#include "support/machine_isas.h"

namespace edgerunner::test {
namespace {

constexpr std::uint32_t kPagesEach = 2;
constexpr std::uint32_t kSequences = 4;

// An executor of the reference, or of the CPU for an instruction set.
std::unique_ptr<Executor> make(const LoraFixture& fixture, Precision precision,
                               std::optional<Isa> isa, int threads = 2) {
  ExecutorOptions options{.precision = precision,
                          .kv = precision == Precision::exact ? KvPrecision::f32 : KvPrecision::f16,
                          .threads = threads,
                          .max_rows = 256,
                          .max_logit_rows = 256,
                          .pages = kPagesEach * kSequences,
                          .max_context = kPagesEach * kPageTokens};
  for (const LoraAdapter& adapter : fixture.adapters) {
    options.adapter_floats += adapter_floats(adapter.largest_rank());
  }
  return isa ? cpu::make_executor(fixture.decoder, options, *isa)
             : make_reference_executor(fixture.decoder, options);
}

const AdapterSet* set_of(const LoraFixture::Answer& answer) {
  return answer.adapters.uses.empty() ? nullptr : &answer.adapters;
}

// The logits of every row of some sequences that begin together, [sequence][row * vocab].
using Logits = std::vector<std::vector<float>>;

// Runs the fixture's prompt once for each set, in chunks of `chunk` rows a sequence.
Logits run(Executor& executor, const LoraFixture& fixture,
           const std::vector<const AdapterSet*>& sets, std::uint32_t chunk,
           bool last_logits_only = false) {
  const std::uint32_t vocab = fixture.decoder.spec.vocab_size;
  const auto length = static_cast<std::uint32_t>(fixture.prompt.size());
  std::vector<PageId> pages(kPagesEach * kSequences);
  for (PageId page = 0; page < pages.size(); ++page) pages[page] = page;
  Logits result(sets.size());
  for (std::uint32_t start = 0; start < length; start += chunk) {
    const std::uint32_t rows = std::min(chunk, length - start);
    std::vector<TokenId> tokens;
    std::vector<SequenceSlice> slices;
    std::vector<std::uint32_t> wanted;
    for (std::size_t i = 0; i < sets.size(); ++i) {
      const std::span<const PageId> own = std::span(pages).subspan(i * kPagesEach, kPagesEach);
      slices.push_back({.rows = rows, .start = start, .pages = own, .adapters = sets[i]});
      for (std::uint32_t row = 0; row < rows; ++row) {
        if (!last_logits_only || row + 1 == rows) {
          wanted.push_back(static_cast<std::uint32_t>(tokens.size()));
        }
        tokens.push_back(fixture.prompt[start + row]);
      }
    }
    std::vector<float> logits(wanted.size() * vocab);
    executor.forward({.tokens = tokens, .sequences = slices, .logit_rows = wanted}, logits);
    const auto each = static_cast<std::ptrdiff_t>(logits.size() / sets.size());
    for (std::size_t i = 0; i < sets.size(); ++i) {
      const auto first = logits.begin() + static_cast<std::ptrdiff_t>(i) * each;
      result[i].insert(result[i].end(), first, first + each);
    }
  }
  return result;
}

double largest_error(const std::vector<float>& logits, const LoraFixture::Answer& answer,
                     std::uint32_t vocab) {
  double largest = 0;
  for (const auto& [position, expected] : answer.logits) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double error =
          std::abs(static_cast<double>(logits[std::size_t{position} * vocab + i]) - expected[i]);
      largest = std::max(largest, std::isnan(error) ? INFINITY : error);
    }
  }
  return largest / answer.peak;
}

void expect_errors(const char* what, Precision precision, std::optional<Isa> isa, double bound) {
  for (const char* model : {"llama", "phi3", "starcoder2"}) {
    const LoraFixture fixture(model);
    const auto executor = make(fixture, precision, isa);
    for (const LoraFixture::Answer& answer : fixture.answers) {
      const Logits logits = run(*executor, fixture, {set_of(answer)}, 64);
      const double error = largest_error(logits[0], answer, fixture.decoder.spec.vocab_size);
      fmt::print("{:12} {:16} {} adapters: {:.1e} of the peak\n", model, what,
                 answer.adapters.uses.size(), error);
      EXPECT_LE(error, bound) << model << ", " << what;
    }
  }
}

TEST(Adapters, ReferenceIsWithin1e5OfPeft) {
  expect_errors("reference", Precision::exact, std::nullopt, 1e-5);
}

TEST(Adapters, ExactIsWithin1e4OfPeft) {
  for (const Isa isa : machine_isas()) {
    expect_errors(fmt::format("exact {}", name(isa)).c_str(), Precision::exact, isa, 1e-4);
  }
}

// The weights are F16, whose activations are bf16; the adapters' own are f32.
TEST(Adapters, FastIsWithinItsBoundOfPeft) {
  for (const Isa isa : machine_isas()) {
    expect_errors(fmt::format("fast {}", name(isa)).c_str(), Precision::fast, isa, 2e-2);
  }
}

TEST(Adapters, RowsHaveTheBitsThatTheyHaveAlone) {
  for (const char* model : {"llama", "phi3", "starcoder2"}) {
    const LoraFixture fixture(model);
    const AdapterSet* const first = set_of(fixture.answers[1]);
    const AdapterSet* const last = set_of(fixture.answers.back());
    const std::vector<const AdapterSet*> sets = {first, nullptr, first, last};
    for (const Precision precision : {Precision::exact, Precision::fast}) {
      for (const Isa isa : machine_isas()) {
        const auto executor = make(fixture, precision, isa);
        const Logits together = run(*executor, fixture, sets, 64);
        EXPECT_EQ(run(*executor, fixture, sets, 1), together) << "in single rows";
        EXPECT_EQ(run(*executor, fixture, sets, 5), together) << "in chunks of 5";
        EXPECT_EQ(run(*make(fixture, precision, isa, 1), fixture, sets, 7), together)
            << "on one thread";
        for (std::size_t i = 0; i < sets.size(); ++i) {
          EXPECT_EQ(run(*executor, fixture, {sets[i]}, 64)[0], together[i]) << "alone";
        }
        EXPECT_NE(together[0], together[1]);
        // More rows of the same adapters than go through them at a time.
        for (const std::vector<float>& same :
             run(*executor, fixture, {first, first, first, first}, 64)) {
          EXPECT_EQ(same, together[0]);
        }
        const std::uint32_t vocab = fixture.decoder.spec.vocab_size;
        const Logits ends = run(*executor, fixture, sets, 64, true);
        for (std::size_t i = 0; i < sets.size(); ++i) {
          EXPECT_EQ(ends[i], std::vector<float>(together[i].end() - vocab, together[i].end()))
              << "where only the last logits are wanted";
        }
      }
    }
  }
}

// What an executor without room for adapters gives, which has no code of theirs to run.
TEST(Adapters, RowsWithoutAdaptersHaveTheModelsBits) {
  for (const char* model : {"llama", "phi3", "starcoder2"}) {
    const LoraFixture fixture(model);
    const AdapterSet* const set = set_of(fixture.answers[1]);
    for (const Precision precision : {Precision::exact, Precision::fast}) {
      for (const Isa isa : machine_isas()) {
        const auto plain = cpu::make_executor(
            fixture.decoder,
            {.precision = precision,
             .kv = precision == Precision::exact ? KvPrecision::f32 : KvPrecision::f16,
             .max_rows = 64,
             .max_logit_rows = 64,
             .pages = kPagesEach,
             .max_context = kPagesEach * kPageTokens},
            isa);
        const std::vector<float> expected = run(*plain, fixture, {nullptr}, 64)[0];
        const auto executor = make(fixture, precision, isa);
        for (const std::uint32_t chunk : {1U, 64U}) {
          EXPECT_EQ(run(*executor, fixture, {set, nullptr, set}, chunk)[1], expected);
        }
      }
    }
  }
}

// What stands for the epilogue of a product whose sums adapters have changed.
TEST(Adapters, GatesHaveTheSameBitsOnEveryInstructionSet) {
  using cpu::Epilogue;
  for (const std::uint32_t size : {1U, 7U, 16U, 53U}) {
    std::vector<float> gate(size);
    std::vector<float> up(size);
    for (std::uint32_t i = 0; i < size; ++i) {
      gate[i] = static_cast<float>(i * 37 % 29) - 14.3F;
      up[i] = static_cast<float>(i * 11 % 17) * 0.4F - 2.1F;
    }
    for (const Epilogue epilogue : {Epilogue::silu_multiply, Epilogue::gelu_multiply}) {
      std::vector<float> expected = gate;
      cpu::kernels(Isa::scalar).apply_gate(epilogue, up.data(), size, expected.data());
      for (const Isa isa : machine_isas()) {
        std::vector<float> got = gate;
        got.push_back(0.5F);
        cpu::kernels(isa).apply_gate(epilogue, up.data(), size, got.data());
        EXPECT_EQ(got.back(), 0.5F) << "past the end";
        got.pop_back();
        EXPECT_EQ(got, expected) << name(isa);
      }
    }
  }
}

TEST(Adapters, AreRefusedByAnExecutorThatWasNotMadeForThem) {
  const LoraFixture fixture("llama");
  const auto executor = make_reference_executor(
      fixture.decoder,
      {.max_rows = 64, .max_logit_rows = 64, .pages = 2, .max_context = 2 * kPageTokens});
  EXPECT_THROW(run(*executor, fixture, {set_of(fixture.answers[1])}, 64), Error);
}

}  // namespace
}  // namespace edgerunner::test
