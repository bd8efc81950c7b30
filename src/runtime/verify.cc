#include "runtime/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/arg_max.h"
#include "runtime/divergence.h"
#include "runtime/score.h"

namespace edgerunner {
namespace {

// Continues a sequence that score() has left in the first pages of a cache.
class Greedy {
 public:
  Greedy(Executor& executor, std::uint32_t vocab_size, std::uint32_t position,
         const AdapterSet* adapters)
      : executor_(&executor),
        adapters_(adapters),
        position_(position),
        pages_(executor.options().pages),
        logits_(vocab_size) {
    std::iota(pages_.begin(), pages_.end(), PageId{0});
  }

  std::span<const float> after(TokenId token) {
    constexpr std::uint32_t kRow = 0;
    const SequenceSlice slice{
        .rows = 1, .start = position_++, .pages = pages_, .adapters = adapters_};
    executor_->forward({.tokens = {&token, 1}, .sequences = {&slice, 1}, .logit_rows = {&kRow, 1}},
                       logits_);
    return logits_;
  }

 private:
  Executor* executor_;
  const AdapterSet* adapters_;
  std::uint32_t position_;
  std::vector<PageId> pages_;
  std::vector<float> logits_;
};

using Rows = std::vector<std::vector<float>>;

Rows all_logits(Executor& executor, std::uint32_t vocab_size, std::span<const TokenId> tokens,
                const AdapterSet* adapters, const std::function<void(std::size_t)>& done) {
  std::vector<std::uint32_t> positions(tokens.size());
  std::iota(positions.begin(), positions.end(), 0U);
  Rows rows;
  score(
      executor, vocab_size, tokens, positions,
      [&](std::uint32_t position, std::span<const float> logits) {
        rows.emplace_back(logits.begin(), logits.end());
        done(position + 1);
      },
      adapters);
  return rows;
}

void compare_positions(const Rows& expected, const Rows& got, VerifyReport& report) {
  for (const std::vector<float>& row : expected) {
    for (const float logit : row) {
      report.largest_logit = std::max<double>(report.largest_logit, std::abs(logit));
    }
  }
  double same = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Divergence d = divergence(expected[i], got[i]);
    const double error = d.difference / report.largest_logit;
    report.positions.push_back({static_cast<std::uint32_t>(i), error, d.kl, d.same_top});
    if (!(error <= report.error)) report.error = error;  // a NaN stays
    report.mean_kl += d.kl / static_cast<double>(expected.size());
    report.largest_kl = std::max(report.largest_kl, d.kl);
    same += d.same_top ? 1 : 0;
  }
  report.top1_agreement = same / static_cast<double>(expected.size());
}

void judge(const VerifyBounds& bounds, VerifyReport& report) {
  if (!(report.error <= bounds.error)) {
    report.failures.push_back(
        fmt::format("a logit is off by {:.2e} of the largest one, more than {:.2g}", report.error,
                    bounds.error));
  }
  if (!(report.mean_kl <= bounds.mean_kl)) {
    report.failures.push_back(fmt::format("the mean KL divergence is {:.2e}, more than {:.2g}",
                                          report.mean_kl, bounds.mean_kl));
  }
  // Two logits, each off by the bound at most, can close a gap of twice that.
  if (report.diverged && report.diverged->gap > 2 * bounds.error) {
    report.failures.push_back(fmt::format(
        "greedy text parts at token {}, where the likeliest one is ahead by {:.2e} of the largest "
        "logit, which errors within the bound can't turn around",
        report.diverged->index, report.diverged->gap));
  }
}

}  // namespace

VerifyBounds default_bounds(Precision precision, KvPrecision kv) {
  if (precision == Precision::exact && kv == KvPrecision::f32) return {1e-4, 1e-6};
  if (precision == Precision::exact && kv == KvPrecision::f16) return {1e-2, 1e-3};
  // Small models move by up to 7 % of the peak with 8-bit activations, llama.cpp's too
  // (docs/numerics.md); their distributions hardly do.
  return {0.15, 0.05};
}

VerifyReport verify(Executor& reference, Executor& tested, std::uint32_t vocab_size,
                    std::span<const TokenId> tokens, std::uint32_t greedy_tokens,
                    const VerifyBounds& bounds, const std::function<void(double)>& progress,
                    const AdapterSet* adapters) {
  const double steps = static_cast<double>(tokens.size() + greedy_tokens);
  const Rows expected = all_logits(reference, vocab_size, tokens, adapters, [&](std::size_t done) {
    progress(static_cast<double>(done) / steps);
  });
  const Rows got = all_logits(tested, vocab_size, tokens, adapters, [](std::size_t) {});
  VerifyReport report;
  compare_positions(expected, got, report);

  const auto position = static_cast<std::uint32_t>(tokens.size());
  Greedy expected_text(reference, vocab_size, position, adapters);
  Greedy got_text(tested, vocab_size, position, adapters);
  std::span<const float> expected_logits = expected.back();
  std::span<const float> got_logits = got.back();
  for (std::uint32_t i = 0; i < greedy_tokens; ++i) {
    const TokenId token = arg_max(expected_logits).token;
    const TokenId chosen = arg_max(got_logits).token;
    ++report.greedy_tokens;
    if (token != chosen) {
      report.diverged = {i, token, chosen, top_gap(expected_logits) / report.largest_logit};
      break;
    }
    if (i + 1 == greedy_tokens) break;
    expected_logits = expected_text.after(token);
    got_logits = got_text.after(token);
    progress((static_cast<double>(tokens.size()) + i + 1) / steps);
  }
  judge(bounds, report);
  return report;
}

}  // namespace edgerunner
