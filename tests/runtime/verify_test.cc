#include "runtime/verify.h"

#include <gmock/gmock.h>

#include <cmath>

#include "support/random_decoder.h"

namespace edgerunner::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const ExecutorOptions kOptions{.precision = Precision::exact,
                               .kv = KvPrecision::f32,
                               .max_rows = 16,
                               .max_logit_rows = 8,
                               .pages = 1,
                               .max_context = 64};

// Another executor's logits, changed.
class Changed final : public Executor {
 public:
  Changed(std::unique_ptr<Executor> inner, std::function<void(std::span<float>)> change)
      : inner_(std::move(inner)), change_(std::move(change)) {}
  void forward(const Batch& batch, std::span<float> logits) override {
    inner_->forward(batch, logits);
    change_(logits);
  }
  void copy_page(PageId from, PageId to, std::uint32_t tokens) override {
    inner_->copy_page(from, to, tokens);
  }
  const ExecutorInfo& info() const override { return inner_->info(); }
  const ExecutorOptions& options() const override { return inner_->options(); }

 private:
  std::unique_ptr<Executor> inner_;
  std::function<void(std::span<float>)> change_;
};

VerifyReport run(const RandomDecoder& model, Executor& tested, const VerifyBounds& bounds) {
  const auto reference = make_reference_executor(model.decoder(), kOptions);
  return verify(*reference, tested, model.decoder().spec.vocab_size, model.tokens(40, 3), 10,
                bounds, [](double) {});
}

TEST(Verify, PassesABackendThatAgrees) {
  const RandomDecoder model({});
  const auto cpu = make_cpu_executor(model.decoder(), kOptions);
  const VerifyReport report = run(model, *cpu, default_bounds(Precision::exact, KvPrecision::f32));
  EXPECT_THAT(report.failures, IsEmpty());
  EXPECT_EQ(report.positions.size(), 40);
  EXPECT_GT(report.error, 0);
  EXPECT_LE(report.error, 1e-4);
  EXPECT_EQ(report.top1_agreement, 1);
  EXPECT_EQ(report.greedy_tokens, 10);
  EXPECT_FALSE(report.diverged);
}

TEST(Verify, FailsALogitOutOfBounds) {
  const RandomDecoder model({});
  Changed tested(make_cpu_executor(model.decoder(), kOptions),
                 [](std::span<float> logits) { logits[5] += 0.1F; });
  const VerifyReport report = run(model, tested, {.error = 1e-4, .mean_kl = 1});
  EXPECT_THAT(report.failures, ElementsAre(HasSubstr("a logit is off")));
  EXPECT_NEAR(report.error * report.largest_logit, 0.1, 1e-3);
  EXPECT_GT(report.mean_kl, 0);
}

TEST(Verify, FailsADistributionOutOfBounds) {
  const RandomDecoder model({});
  Changed tested(make_cpu_executor(model.decoder(), kOptions), [](std::span<float> logits) {
    for (float& logit : logits) logit *= 1.5F;
  });
  const VerifyReport report = run(model, tested, {.error = 1, .mean_kl = 1e-4});
  EXPECT_THAT(report.failures, ElementsAre(HasSubstr("KL")));
  EXPECT_EQ(report.top1_agreement, 1);
}

TEST(Verify, FailsAGreedyTextThatPartsWhereNothingIsNear) {
  const RandomDecoder model({});
  Changed tested(make_cpu_executor(model.decoder(), kOptions), [](std::span<float> logits) {
    for (float& logit : logits) logit = -logit;
  });
  const VerifyReport report = run(model, tested, {.error = 1e-6, .mean_kl = 1e3});
  ASSERT_TRUE(report.diverged);
  EXPECT_EQ(report.diverged->index, 0);
  EXPECT_NE(report.diverged->expected, report.diverged->got);
  EXPECT_THAT(report.failures,
              ElementsAre(HasSubstr("a logit is off"), HasSubstr("greedy text parts at token 0")));
}

TEST(Verify, FailsWhatIsNotANumber) {
  const RandomDecoder model({});
  Changed tested(make_cpu_executor(model.decoder(), kOptions),
                 [](std::span<float> logits) { logits[0] = NAN; });
  EXPECT_FALSE(run(model, tested, {.error = 10, .mean_kl = 10}).failures.empty());
}

}  // namespace
}  // namespace edgerunner::test
