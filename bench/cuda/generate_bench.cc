#include "generate_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <numeric>

#include "backend/cuda/chooser.h"
#include "backend/cuda/cuda_executor.h"

namespace edgerunner::cuda {
namespace {

constexpr int kRepetitions = 5;

struct Kind {
  const char* name;
  SamplingOptions options;
};

std::vector<Kind> kinds() {
  SamplingOptions sampled;
  sampled.temperature = 0.8F;
  sampled.top_k = 40;
  sampled.top_p = 0.95F;
  SamplingOptions penalised = sampled;
  penalised.min_p = 0.05F;
  penalised.repeat_penalty = 1.1F;
  SamplingOptions whole;
  whole.temperature = 1;
  return {{"greedy", {}},
          {"top_k 40, top_p 0.95", sampled},
          {"the same, min_p and penalties", penalised},
          {"whole vocabulary", whole}};
}

}  // namespace

void bench_generate(std::string_view shape, std::string_view type, const Decoder& decoder,
                    const std::vector<std::uint32_t>& depths) {
  const std::uint32_t deepest = *std::max_element(depths.begin(), depths.end());
  ExecutorOptions options;
  options.max_rows = 512;
  options.max_logit_rows = 1;
  options.max_context = deepest + 2 * kMostSteps;
  options.pages = pages_for(options.max_context);
  const auto executor = make_executor(decoder, options, WeightSource::random);
  std::vector<PageId> pages(options.pages);
  std::iota(pages.begin(), pages.end(), PageId{0});
  const TokenId token = 7;
  const std::uint32_t first = 0;
  std::array<TokenId, kMostSteps> chosen;
  for (const std::uint32_t depth : depths) {
    const SequenceSlice slice{1, depth, pages};
    for (const Kind& kind : kinds()) {
      const TokenChoice choice{&kind.options, {&token, 1}, depth};
      std::vector<double> rates;
      for (int i = 0; i <= kRepetitions; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        executor->chooser()->choose({{&token, 1}, {&slice, 1}, {&first, 1}}, {&choice, 1},
                                    kMostSteps, chosen);
        const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
        if (i > 0) rates.push_back(kMostSteps / time.count());  // the first one warms up
      }
      std::sort(rates.begin(), rates.end());
      fmt::print(
          "{{\"shape\":\"{}\",\"type\":\"{}\",\"test\":\"generate\",\"sampling\":\"{}\",\"tokens\":"
          "{},\"rows\":1,\"depth\":{},\"tps\":{:.1f},\"tps_min\":{:.1f},\"tps_max\":{:.1f},"
          "\"left_to_host\":{},\"backend\":\"cuda\",\"gpu\":\"{}\"}}\n",
          shape, type, kind.name, kMostSteps, depth, rates[rates.size() / 2], rates.front(),
          rates.back(), std::count(chosen.begin(), chosen.end(), kNoToken),
          static_cast<const char*>(device_properties().name));
      std::fflush(stdout);
    }
  }
}

}  // namespace edgerunner::cuda
