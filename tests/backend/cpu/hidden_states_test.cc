#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "backend/executor.h"
#include "support/model_fixture.h"
#include "support/shared_data.h"
#include "tensor/dequantize.h"

namespace edgerunner::test {
namespace {

// Logits by the plain product of the head with hidden states.
std::vector<double> head_times(const Matrix& head, std::span<const float> hidden) {
  std::vector<double> logits;
  std::vector<float> row(head.cols);
  const std::size_t stride = row_bytes(head.type, head.cols);
  for (std::size_t i = 0; i < head.rows; ++i) {
    dequantize(head.type, head.data.subspan(i * stride, stride), row);
    logits.push_back(std::inner_product(row.begin(), row.end(), hidden.begin(), 0.0));
  }
  return logits;
}

TEST(HiddenStates, GiveTheLogitsOfTheFixtures) {
  EDGERUNNER_REQUIRE_SHARED_DATA();
  for (const std::string& name : plain_fixtures()) {
    const ModelFixture fixture = load_fixture(name);
    const std::uint32_t dim = fixture.decoder.spec.dim;
    const auto rows = static_cast<std::uint32_t>(fixture.prompt.size());
    const ExecutorOptions options{.precision = Precision::exact,
                                  .kv = KvPrecision::f32,
                                  .threads = 2,
                                  .max_rows = 512,
                                  .max_logit_rows = 8,
                                  .pages = pages_for(rows),
                                  .max_context = fixture.context};
    std::vector<PageId> pages(options.pages);
    std::iota(pages.begin(), pages.end(), PageId{0});
    const SequenceSlice slice{.rows = rows, .start = 0, .pages = pages};
    for (const auto& executor : {make_cpu_executor(fixture.decoder, options),
                                 make_reference_executor(fixture.decoder, options)}) {
      std::vector<float> hidden(std::size_t{rows} * dim);
      executor->embed({.tokens = fixture.prompt, .sequences = {&slice, 1}, .logit_rows = {}},
                      hidden);
      double largest = 0;
      for (const auto& [position, expected] : fixture.logits) {
        const auto logits = head_times(fixture.decoder.weights.head,
                                       std::span(hidden).subspan(position * std::size_t{dim}, dim));
        for (std::size_t i = 0; i < expected.size(); ++i) {
          largest = std::max(largest, std::abs(logits[i] - expected[i]));
        }
      }
      EXPECT_LE(largest / fixture.peak, 1e-4) << name << " " << executor->info().backend;
    }
  }
}

}  // namespace
}  // namespace edgerunner::test
