#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "backend/cuda/device.h"
#include "backend/executor.h"
#include "backend/token_chooser.h"
#include "edgerunner/error.h"
#include "support/lora_fixture.h"
#include "tensor/dequantize.h"
#include "tensor/quantize.h"

// LoRA adapters on the cuda backend: logits against Hugging Face PEFT's, and the same bits whatever
// rows are beside a row.

namespace edgerunner::test {
namespace {

constexpr std::uint32_t kPagesEach = 1;
constexpr std::uint32_t kSequences = 4;

// A fixture's decoder in Q8_0, whose products of a few rows differ from those of other types.
class QuantisedDecoder {
 public:
  explicit QuantisedDecoder(const Decoder& from) : decoder_(from) {
    quantise(decoder_.weights.embedding);
    quantise(decoder_.weights.head);
    for (LayerWeights& layer : decoder_.weights.layers) {
      AttentionWeights& a = layer.attention;
      FeedForwardWeights& f = layer.feed_forward;
      for (Matrix* matrix : {&a.q, &a.k, &a.v, &a.o, &f.gate, &f.up, &f.down}) quantise(*matrix);
    }
  }
  const Decoder& decoder() const { return decoder_; }

 private:
  void quantise(Matrix& matrix) {
    if (matrix.empty()) return;
    std::vector<float> values(std::size_t{matrix.rows} * matrix.cols);
    dequantize(matrix.type, matrix.data, values);
    matrix.type = ElementType::q8_0;
    auto& blocks = storage_.emplace_back(row_bytes(matrix.type, matrix.cols) * matrix.rows);
    quantize(matrix.type, values, blocks);
    matrix.data = blocks;
  }

  std::deque<std::vector<std::byte>> storage_;
  Decoder decoder_;
};

// The logits of every row of some sequences that begin together, [sequence][row * vocab].
using Logits = std::vector<std::vector<float>>;

class CudaAdapters : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!cuda_available()) GTEST_SKIP() << "no GPU";
    fixture_ = std::make_unique<LoraFixture>(GetParam());
  }

  std::unique_ptr<Executor> make(const Decoder& decoder, Precision precision,
                                 bool with_adapters = true) const {
    ExecutorOptions options{
        .precision = precision,
        .kv = precision == Precision::exact ? KvPrecision::f32 : KvPrecision::f16,
        .max_rows = 256,
        .max_logit_rows = 256,
        .pages = kPagesEach * kSequences,
        .max_context = kPagesEach * kPageTokens};
    if (with_adapters) {
      for (const LoraAdapter& adapter : fixture_->adapters) {
        options.adapter_floats += adapter_floats(adapter.largest_rank());
        options.adapters.push_back(&adapter);
      }
    }
    return make_cuda_executor(decoder, options);
  }

  static const AdapterSet* set_of(const LoraFixture::Answer& answer) {
    return answer.adapters.uses.empty() ? nullptr : &answer.adapters;
  }

  // Runs the fixture's prompt once for each set, in chunks of `chunk` rows a sequence.
  Logits run(Executor& executor, const std::vector<const AdapterSet*>& sets,
             std::uint32_t chunk) const {
    const std::uint32_t vocab = fixture_->decoder.spec.vocab_size;
    const auto length = static_cast<std::uint32_t>(fixture_->prompt.size());
    const std::vector<PageId> pages = {2, 0, 3, 1};
    Logits result(sets.size());
    for (std::uint32_t start = 0; start < length; start += chunk) {
      const std::uint32_t rows = std::min(chunk, length - start);
      std::vector<TokenId> tokens;
      std::vector<SequenceSlice> slices;
      std::vector<std::uint32_t> wanted;
      for (std::size_t i = 0; i < sets.size(); ++i) {
        slices.push_back({rows, start, std::span(pages).subspan(i, 1), sets[i]});
        for (std::uint32_t row = 0; row < rows; ++row) {
          wanted.push_back(static_cast<std::uint32_t>(tokens.size()));
          tokens.push_back(fixture_->prompt[start + row]);
        }
      }
      std::vector<float> logits(wanted.size() * vocab);
      executor.forward({tokens, slices, wanted}, logits);
      const auto each = static_cast<std::ptrdiff_t>(logits.size() / sets.size());
      for (std::size_t i = 0; i < sets.size(); ++i) {
        const auto first = logits.begin() + static_cast<std::ptrdiff_t>(i) * each;
        result[i].insert(result[i].end(), first, first + each);
      }
    }
    return result;
  }

  // The largest difference from an answer, as a fraction of its peak.
  double error(const std::vector<float>& logits, const LoraFixture::Answer& answer) const {
    double largest = 0;
    for (const auto& [position, expected] : answer.logits) {
      const std::size_t at = std::size_t{position} * fixture_->decoder.spec.vocab_size;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const double off = std::abs(static_cast<double>(logits[at + i]) - expected[i]);
        largest = std::max(largest, std::isnan(off) ? INFINITY : off);
      }
    }
    return largest / answer.peak;
  }

  std::unique_ptr<LoraFixture> fixture_;
};

TEST_P(CudaAdapters, AreWithinTheirBoundsOfPeft) {
  for (const auto& [precision, bound] :
       {std::pair{Precision::exact, 1e-4}, std::pair{Precision::fast, 2e-2}}) {
    const auto executor = make(fixture_->decoder, precision);
    for (const LoraFixture::Answer& answer : fixture_->answers) {
      for (const std::uint32_t chunk : {1U, 64U}) {
        const double off = error(run(*executor, {set_of(answer)}, chunk)[0], answer);
        fmt::print("{} {} with {} adapters, chunks of {}: {:.1e} of the peak\n", GetParam(),
                   precision == Precision::exact ? "exact" : "fast", answer.adapters.uses.size(),
                   chunk, off);
        EXPECT_LE(off, bound);
      }
    }
  }
}

// The products of a few rows: what Q8_0 rounds is in both.
TEST_P(CudaAdapters, OfAFewRowsAreNearThoseInExact) {
  const QuantisedDecoder quantised(fixture_->decoder);
  const auto exact = make(quantised.decoder(), Precision::exact);
  const auto fast = make(quantised.decoder(), Precision::fast);
  const std::vector<const AdapterSet*> sets = {set_of(fixture_->answers[1]), nullptr,
                                               set_of(fixture_->answers.back())};
  const Logits right = run(*exact, sets, 64);
  for (const std::uint32_t chunk : {1U, 5U}) {
    const Logits got = run(*fast, sets, chunk);
    for (std::size_t i = 0; i < sets.size(); ++i) {
      float peak = 0;
      float largest = 0;
      for (std::size_t k = 0; k < right[i].size(); ++k) {
        peak = std::max(peak, std::abs(right[i][k]));
        largest = std::max(largest, std::abs(got[i][k] - right[i][k]));
      }
      EXPECT_LE(largest, 2e-2F * peak) << "sequence " << i << " in chunks of " << chunk;
    }
    EXPECT_NE(got[0], got[1]);
  }
}

TEST_P(CudaAdapters, RowsHaveTheBitsThatTheyHaveAlone) {
  const std::vector<const AdapterSet*> sets = {set_of(fixture_->answers[1]), nullptr,
                                               set_of(fixture_->answers[1]),
                                               set_of(fixture_->answers.back())};
  const auto executor = make(fixture_->decoder, Precision::exact);
  const Logits together = run(*executor, sets, 64);
  for (const std::uint32_t chunk : {1U, 5U}) EXPECT_EQ(run(*executor, sets, chunk), together);
  for (std::size_t i = 0; i < sets.size(); ++i) {
    EXPECT_EQ(run(*executor, {sets[i]}, 64)[0], together[i]);
  }
  EXPECT_NE(together[0], together[1]);
  EXPECT_EQ(together[0], together[2]);
}

// What an executor that has no adapters gives, beside rows with and without them.
TEST_P(CudaAdapters, RowsWithoutAdaptersHaveTheModelsBits) {
  const QuantisedDecoder quantised(fixture_->decoder);
  const AdapterSet* const set = set_of(fixture_->answers[1]);
  for (const Precision precision : {Precision::exact, Precision::fast}) {
    for (const Decoder* decoder : {&std::as_const(fixture_->decoder), &quantised.decoder()}) {
      const auto plain = make(*decoder, precision, false);
      const auto executor = make(*decoder, precision);
      for (const std::uint32_t chunk : {1U, 5U, 64U}) {
        EXPECT_EQ(run(*executor, {set, nullptr, set}, chunk)[1],
                  run(*plain, {nullptr, nullptr, nullptr}, chunk)[1])
            << "in chunks of " << chunk;
      }
    }
  }
}

// Bursts are replayed as graphs, forward() is launched kernel by kernel.
TEST_P(CudaAdapters, BurstsChooseWhatSingleStepsDo) {
  const QuantisedDecoder quantised(fixture_->decoder);
  const auto executor = make(quantised.decoder(), Precision::fast);
  const std::uint32_t vocab = fixture_->decoder.spec.vocab_size;
  const AdapterSet* const some = set_of(fixture_->answers[1]);
  const AdapterSet* const all = set_of(fixture_->answers.back());
  const std::vector<PageId> pages = {0, 1, 2};
  const SamplingOptions greedy;
  constexpr std::uint32_t kSteps = 8;
  using Sets = std::vector<const AdapterSet*>;
  const std::vector<Sets> batches = {
      {some, nullptr, all}, {nullptr, nullptr, nullptr}, {all, all, some}, {some, nullptr, all}};
  const auto decode = [&](bool in_bursts) {
    std::vector<TokenId> last = {1, 2, 3};
    std::vector<TokenId> chosen;
    std::uint32_t start = 0;
    for (const Sets& sets : batches) {
      for (std::uint32_t step = 0; step < kSteps; step += in_bursts ? kSteps : 1) {
        std::vector<SequenceSlice> slices;
        for (std::size_t i = 0; i < sets.size(); ++i) {
          slices.push_back({1, start + step, std::span(pages).subspan(i, 1), sets[i]});
        }
        const std::vector<std::uint32_t> wanted = {0, 1, 2};
        std::vector<TokenId> next;
        if (in_bursts) {
          const std::vector<TokenChoice> choices(3, TokenChoice{&greedy, {last.data(), 1}, 0});
          next.resize(std::size_t{kSteps} * 3);
          executor->chooser()->choose({last, slices, wanted}, choices, kSteps, next);
        } else {
          std::vector<float> logits(std::size_t{3} * vocab);
          executor->forward({last, slices, wanted}, logits);
          for (auto row = logits.begin(); row != logits.end(); row += vocab) {
            next.push_back(static_cast<TokenId>(std::max_element(row, row + vocab) - row));
          }
        }
        chosen.insert(chosen.end(), next.begin(), next.end());
        last.assign(next.end() - 3, next.end());
      }
      start += kSteps;
    }
    return chosen;
  };
  EXPECT_EQ(decode(true), decode(false));
}

TEST_P(CudaAdapters, AreAppliedWithoutAllocatingAndOnlyWhereKnown) {
  const auto executor = make(fixture_->decoder, Precision::fast);
  const std::uint64_t before = cuda::DeviceBuffer::allocations();
  run(*executor, {set_of(fixture_->answers[1])}, 7);
  EXPECT_EQ(cuda::DeviceBuffer::allocations(), before);
  const auto plain = make(fixture_->decoder, Precision::fast, false);
  EXPECT_THROW(run(*plain, {set_of(fixture_->answers[1])}, 64), Error);
}

INSTANTIATE_TEST_SUITE_P(Models, CudaAdapters, testing::Values("llama", "phi3", "starcoder2"));

}  // namespace
}  // namespace edgerunner::test
