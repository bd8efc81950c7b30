// The logits of a row depend on its sequence's tokens alone, to the bit.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "backend/cpu/cpu_executor.h"
#include "backend/cpu/matmul.h"
#include "backend/cpu/sequences.h"
#include "support/machine_isas.h"
#include "support/random_decoder.h"

namespace edgerunner::test {
namespace {

struct Case {
  const char* name;
  DecoderShape shape;
  Precision precision;
  KvPrecision kv;
};

const Case kCases[] = {
    {"F32 exact", {}, Precision::exact, KvPrecision::f32},
    {"Q8_0 fast", {.type = ElementType::q8_0}, Precision::fast, KvPrecision::f16},
    {"Q4_0 exact, head_dim 80, 4 heads a KV head, norms and biases",
     {.heads = 4,
      .kv_heads = 1,
      .head_dim = 80,
      .type = ElementType::q4_0,
      .biases = true,
      .head_norms = true,
      .rope = RopeLayout::half_split},
     Precision::exact,
     KvPrecision::f16},
    {"BF16 fast, window 100, head_dim 16, 1 head a KV head",
     {.heads = 4, .kv_heads = 4, .head_dim = 16, .window = 100, .type = ElementType::bf16},
     Precision::fast,
     KvPrecision::f16},
    {"Q8_0 fast, 8-bit cache, 5 heads a KV head",
     {.heads = 10, .kv_heads = 2, .head_dim = 32, .dim = 64, .type = ElementType::q8_0},
     Precision::fast,
     KvPrecision::q8},
};

constexpr std::uint32_t kPages = 64;
constexpr std::uint32_t kPagesEach = 12;
// Ten pages and three splits of the cache; three pages where kernels are slow, and for neon, which
// has neon_i8mm's code but for the products and runs in an emulator.
std::uint32_t length_on(Isa isa) { return isa == Isa::scalar || isa == Isa::neon ? 150 : 600; }

std::unique_ptr<Executor> make(const RandomDecoder& model, const Case& c, Isa isa, int threads) {
  return cpu::make_executor(model.decoder(),
                            {.precision = c.precision,
                             .kv = c.kv,
                             .threads = threads,
                             .max_rows = 512,
                             .max_logit_rows = 512,
                             .pages = kPages,
                             .max_context = kPagesEach * kPageTokens},
                            isa);
}

void for_each_case(const std::function<void(const Case&, const RandomDecoder&, Isa)>& body) {
  for (const Case& c : kCases) {
    const RandomDecoder model(c.shape);
    for (const Isa isa : machine_isas()) {
      SCOPED_TRACE(fmt::format("{} on {}", c.name, name(isa)));
      body(c, model, isa);
    }
  }
}

// EXPECT_EQ would print two vectors of thousands of numbers.
void expect_same(const LogitRows& got, const LogitRows& wanted, const std::string& what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (std::size_t row = 0; row < got.size(); ++row) {
    ASSERT_TRUE(got[row] == wanted[row]) << what << ": token " << row << " differs";
  }
}

TEST(CpuBits, ChunksOfAnySizeGiveTheSame) {
  for_each_case([](const Case& c, const RandomDecoder& model, Isa isa) {
    const auto executor = make(model, c, isa, 2);
    const auto tokens = model.tokens(length_on(isa), 1);
    const LogitRows whole = run(*executor, c.shape.vocab, tokens, 512, page_range(0, kPagesEach));
    for (const std::uint32_t chunk : {1U, 7U, 300U}) {
      expect_same(run(*executor, c.shape.vocab, tokens, chunk, page_range(20, kPagesEach)), whole,
                  fmt::format("chunks of {}", chunk));
    }
  });
}

TEST(CpuBits, EveryInstructionSetGivesTheSame) {
  for (const Case& c : kCases) {
    const RandomDecoder model(c.shape);
    const auto tokens = model.tokens(150, 6);
    LogitRows first;
    const bool halves =
        cpu::activation_format(c.shape.type, c.precision) == cpu::ActivationFormat::bf16;
    for (const Isa isa : machine_isas()) {
      if (halves && isa == Isa::amx) continue;  // has an order of its own: matmul.h
      const LogitRows rows =
          run(*make(model, c, isa, 2), c.shape.vocab, tokens, 100, page_range(0, kPagesEach));
      if (first.empty()) first = rows;
      expect_same(rows, first, fmt::format("{} on {}", c.name, name(isa)));
    }
  }
}

TEST(CpuBits, AnyNumberOfThreadsGivesTheSame) {
  for_each_case([](const Case& c, const RandomDecoder& model, Isa isa) {
    const auto tokens = model.tokens(length_on(isa), 2);
    LogitRows one;
    for (const int threads : {1, 2, 5}) {
      const auto executor = make(model, c, isa, threads);
      for (const std::uint32_t chunk : {512U, 3U}) {
        const LogitRows rows =
            run(*executor, c.shape.vocab, tokens, chunk, page_range(0, kPagesEach));
        if (one.empty()) one = rows;
        expect_same(rows, one, fmt::format("{} threads, chunks of {}", threads, chunk));
      }
    }
  });
}

TEST(CpuBits, OtherSequencesInTheBatchChangeNothing) {
  for_each_case([](const Case& c, const RandomDecoder& model, Isa isa) {
    const auto executor = make(model, c, isa, 2);
    std::vector<Sequence> together;
    for (std::uint32_t i = 0; i < 4; ++i) {
      together.push_back(
          {model.tokens(600 - 50 * i, 10 + i), page_range(i * kPagesEach, kPagesEach)});
    }
    const std::uint32_t steps[][4] = {{100, 1, 0, 30}, {1, 60, 200, 1}, {1, 1, 1, 1},
                                      {1, 1, 1, 1},    {90, 1, 2, 300}, {0, 200, 3, 1}};
    for (const auto& counts : steps) step(*executor, c.shape.vocab, together, counts);
    for (const Sequence& s : together) {
      expect_same(run(*executor, c.shape.vocab, std::span(s.tokens).first(s.done), 512,
                      page_range(50, kPagesEach)),
                  s.logits, "alone");
    }
  });
}

TEST(CpuBits, ReusedPagesGiveTheSame) {
  for_each_case([](const Case& c, const RandomDecoder& model, Isa isa) {
    const auto executor = make(model, c, isa, 2);
    const auto tokens = model.tokens(length_on(isa), 3);
    const auto full = static_cast<std::uint32_t>(tokens.size()) / kPageTokens - 1;
    const std::uint32_t shared = full * kPageTokens + 17;
    const LogitRows whole = run(*executor, c.shape.vocab, tokens, 512, page_range(0, kPagesEach));

    // Another sequence begins with the same tokens: full pages as they are, 17 tokens copied.
    std::vector<PageId> pages = page_range(20, kPagesEach);
    for (std::uint32_t i = 0; i < full; ++i) pages[i] = i;
    executor->copy_page(full, pages[full], 17);
    Sequence second{tokens, pages, shared};
    const auto rest = static_cast<std::uint32_t>(tokens.size()) - shared;
    step(*executor, c.shape.vocab, {&second, 1}, {&rest, 1});
    expect_same(second.logits, LogitRows(whole.begin() + shared, whole.end()), "with a prefix");
  });
}

TEST(CpuBits, RowsWithoutLogitsChangeNothing) {
  for_each_case([](const Case& c, const RandomDecoder& model, Isa isa) {
    const auto executor = make(model, c, isa, 2);
    const auto tokens = model.tokens(length_on(isa), 4);
    const LogitRows whole = run(*executor, c.shape.vocab, tokens, 512, page_range(0, kPagesEach));

    const auto pages = page_range(20, kPagesEach);
    constexpr std::uint32_t kSecond = 100;
    const std::uint32_t half = static_cast<std::uint32_t>(tokens.size()) - kSecond;
    const SequenceSlice first{half, 0, pages};
    executor->forward({std::span(tokens).first(half), {&first, 1}, {}}, {});
    const SequenceSlice second{kSecond, half, pages};
    const std::vector<std::uint32_t> wanted{0, 1, 77, kSecond - 1};
    std::vector<float> logits(wanted.size() * c.shape.vocab);
    executor->forward({std::span(tokens).subspan(half), {&second, 1}, wanted}, logits);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(i * c.shape.vocab);
      EXPECT_TRUE(std::equal(begin, begin + c.shape.vocab, whole[half + wanted[i]].begin()))
          << "row " << wanted[i];
    }
  });
}

TEST(CpuBits, PagesBehindTheWindowAreNotNeeded) {
  constexpr std::uint32_t kLength = 600;
  const Case& c = kCases[3];
  const RandomDecoder model(c.shape);
  for (const Isa isa : machine_isas()) {
    const auto executor = make(model, c, isa, 2);
    const auto tokens = model.tokens(kLength, 5);
    const LogitRows whole = run(*executor, c.shape.vocab, tokens, 512, page_range(0, kPagesEach));
    // A window of 100 sees at most three pages: four suffice, used in turn.
    Sequence sequence{tokens, std::vector<PageId>(kPagesEach, kNoPage)};
    for (std::uint32_t position = 0; position < kLength; ++position) {
      const std::uint32_t page = position / kPageTokens;
      sequence.pages[page] = 30 + page % 4;
      if (page >= 4) sequence.pages[page - 4] = kNoPage;
      const std::uint32_t one = 1;
      step(*executor, c.shape.vocab, {&sequence, 1}, {&one, 1});
    }
    expect_same(sequence.logits, whole, std::string(name(isa)));
  }
}

}  // namespace
}  // namespace edgerunner::test
