#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cuda/cuda_executor.h"
#include "backend/cuda/decode_plan.h"
#include "backend/cuda/repack.h"
#include "backend/token_chooser.h"
#include "edgerunner/error.h"
#include "edgerunner/sampling.h"
#include "family_shapes.h"
#include "generate_bench.h"

// Measures the cuda backend on random weights made on the device: a line of JSON a measurement.
//   cuda_bench SHAPE TYPE decode [DEPTH...]     greedy tokens chosen on the device, one sequence
//   cuda_bench SHAPE TYPE prefill [TOKENS...]   a prompt through the executor
//   cuda_bench SHAPE TYPE generate [DEPTH...]   one sequence through the executor, sampled there
//   cuda_bench SHAPE TYPE rows DEPTH [ROWS...]  greedy tokens of several sequences, chosen on the
//                                               device, through the executor
// `kv=f16|f32|q8` after these is the cache's precision in prefill and rows (f16).

namespace {

using namespace edgerunner;
using namespace edgerunner::cuda;

constexpr int kRepetitions = 5;

// The median time of `work` in milliseconds, on the device.
template <typename Work>
std::vector<float> time_all(cudaStream_t stream, Work&& work) {
  const Event begin;
  const Event end;
  std::vector<float> times;
  for (int i = 0; i <= kRepetitions; ++i) {
    check(cudaEventRecord(begin, stream), "timing");
    work();
    check(cudaEventRecord(end, stream), "timing");
    check(cudaEventSynchronize(end), "timing");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "timing");
    if (i > 0) times.push_back(ms);  // the first one warms up
  }
  std::sort(times.begin(), times.end());
  return times;
}

struct Case {
  std::string shape;
  std::string type;
  Decoder decoder;
  KvPrecision kv = KvPrecision::f16;
};

void report(const Case& c, std::string_view test, std::uint32_t tokens, std::uint32_t depth,
            std::uint32_t rows, const std::vector<float>& times, std::uint64_t bytes) {
  const double count = static_cast<double>(tokens) * rows;
  const double median = times[times.size() / 2];
  fmt::print(
      "{{\"shape\":\"{}\",\"type\":\"{}\",\"kv\":\"{}\",\"test\":\"{}\",\"tokens\":{},\"rows\":{},"
      "\"depth\":{},\"tps\":{:.1f},\"tps_min\":{:.1f},\"tps_max\":{:.1f},\"us_per_step\":{:.2f}",
      c.shape, c.type, name(c.kv), test, tokens, rows, depth, count / median * 1e3,
      count / times.back() * 1e3, count / times.front() * 1e3, median * 1e3 / tokens);
  if (bytes != 0) {
    fmt::print(",\"weight_gb_per_s\":{:.0f}", static_cast<double>(bytes) * tokens / median / 1e6);
  }
  fmt::print(",\"backend\":\"cuda\",\"gpu\":\"{}\"}}\n",
             static_cast<const char*>(device_properties().name));
  std::fflush(stdout);
}

// Prints where a layer's time goes, in clock cycles: of each phase the rows, from a block's having
// the input, as the mean of all blocks and of the quickest and the slowest; and from there to the
// next phase's input.
void print_timeline(const std::vector<long long>& clocks, std::uint32_t blocks,
                    std::uint32_t layers) {
  constexpr const char* kPhases[] = {"q, k, v", "o", "gate, up", "down"};
  for (std::uint32_t phase = 0; phase < 4; ++phase) {
    std::vector<double> rows(blocks);
    double next = 0;
    for (std::uint32_t block = 0; block < blocks; ++block) {
      for (std::uint32_t layer = 1; layer + 1 < layers; ++layer) {
        const long long* const at =
            &clocks[(std::size_t{block} * (4 * layers + 1) + 4 * layer + phase) * kTimelinePoints];
        rows[block] += static_cast<double>(at[kPhaseRowsDone] - at[kPhaseReceived]) / (layers - 2);
        next += static_cast<double>(at[kTimelinePoints + kPhaseReceived] - at[kPhaseRowsDone]);
      }
    }
    const auto [quickest, slowest] = std::minmax_element(rows.begin(), rows.end());
    fmt::print(stderr, "  {:9} rows {:.0f} ({:.0f} to {:.0f}) next input {:.0f}\n", kPhases[phase],
               std::accumulate(rows.begin(), rows.end(), 0.0) / blocks, *quickest, *slowest,
               next / (static_cast<double>(blocks) * (layers - 2)));
  }
}

void bench_decode(const Case& c, const std::vector<std::uint32_t>& depths) {
  constexpr std::uint32_t kTokens = 64;
  const std::uint32_t deepest = *std::max_element(depths.begin(), depths.end());
  ExecutorOptions options;
  options.max_rows = 1;
  options.max_context = deepest + kTokens + 1;
  options.pages = options.max_context / kPageTokens + 1;
  const DeviceProperties device = device_properties();
  const DeviceWeights weights(c.decoder, WeightSource::random);
  const CachePool cache(c.decoder.spec, options);
  const Stream stream;
  for (std::size_t i = 0; i < c.decoder.spec.layers.size(); ++i) {
    const LayerSpec& layer = c.decoder.spec.layers[i];
    const std::uint32_t row = layer.kv_heads * layer.head_dim;
    for (void* values : {cache.layer(i).keys, cache.layer(i).values}) {
      launch_random_blocks(ElementType::f16, row, static_cast<std::uint8_t*>(values), 0,
                           options.pages * kPageTokens, i, stream);
    }
  }
  const auto& frequencies = c.decoder.spec.rope.inverse_frequencies;
  const DeviceBuffer device_frequencies(frequencies.size() * sizeof(double));
  check(cudaMemcpy(device_frequencies.as<void>(), frequencies.data(), device_frequencies.size(),
                   cudaMemcpyHostToDevice),
        "uploading");
  const DecodePlan plan(c.decoder.spec, options, device, weights, cache,
                        device_frequencies.as<double>());
  std::vector<std::uint32_t> state = {1, 0, 0};  // token, position, tokens produced
  for (std::uint32_t page = 0; page < options.pages; ++page) state.push_back(page);
  const DeviceBuffer device_state(state.size() * sizeof(std::uint32_t));
  const DeviceBuffer logits(std::size_t{c.decoder.spec.vocab_size} * sizeof(float));
  auto* const words = device_state.as<std::uint32_t>();
  auto* const token = reinterpret_cast<TokenId*>(words);
  for (const std::uint32_t depth : depths) {
    state[1] = depth;
    const auto times = time_all(stream, [&] {
      check(
          cudaMemcpyAsync(words, state.data(), device_state.size(), cudaMemcpyHostToDevice, stream),
          "resetting");
      for (std::uint32_t i = 0; i < kTokens; ++i) {
        plan.launch({token, words + 1, words + 3, logits.as<float>(), token, words + 1}, stream);
      }
    });
    report(c, "decode", kTokens, depth, 1, times, plan.stream_bytes());
    const auto layers = static_cast<std::uint32_t>(c.decoder.spec.layers.size());
    std::vector<long long> clocks(std::size_t{plan.blocks()} * (4 * layers + 1) * kTimelinePoints);
    const DeviceBuffer timeline(clocks.size() * sizeof(long long));
    for (int i = 0; i < 2; ++i) {
      plan.launch({token, words + 1, words + 3, logits.as<float>(), token, words + 1, nullptr,
                   nullptr, timeline.as<long long>()},
                  stream);
    }
    stream.synchronize();
    check(cudaMemcpy(clocks.data(), timeline.as<void>(), timeline.size(), cudaMemcpyDeviceToHost),
          "fetching the timeline");
    print_timeline(clocks, plan.blocks(), layers);
  }
}

// Runs batches through the executor, timed by the host: what a caller sees.
void bench_executor(const Case& c, std::string_view test, std::uint32_t depth,
                    const std::vector<std::uint32_t>& sizes) {
  const bool prefill = test == "prefill";
  const std::uint32_t largest = *std::max_element(sizes.begin(), sizes.end());
  ExecutorOptions options;
  options.kv = c.kv;
  options.max_rows = largest;
  options.max_logit_rows = prefill ? 1 : largest;
  options.max_context = prefill ? largest : depth + 64;
  const std::uint32_t pages_each = options.max_context / kPageTokens + 1;
  options.pages = prefill ? pages_each : largest * pages_each;
  const auto executor = make_executor(c.decoder, options, WeightSource::random);
  std::vector<float> logits(std::size_t{options.max_logit_rows} * c.decoder.spec.vocab_size);
  for (const std::uint32_t size : sizes) {
    std::vector<TokenId> tokens(size);
    for (std::uint32_t i = 0; i < size; ++i) tokens[i] = static_cast<TokenId>(i * 7919 % 32000);
    std::vector<PageId> pages(options.pages);
    for (std::uint32_t i = 0; i < options.pages; ++i) pages[i] = i;
    std::vector<SequenceSlice> slices;
    std::vector<std::uint32_t> wanted;
    if (prefill) {
      slices.push_back({size, 0, pages});
      wanted.push_back(size - 1);
    } else {
      for (std::uint32_t i = 0; i < size; ++i) {
        slices.push_back({1, depth, std::span(pages).subspan(i * pages_each, pages_each)});
        wanted.push_back(i);
      }
    }
    constexpr std::uint32_t kSteps = 16;
    const std::uint32_t steps = prefill ? 1 : std::min(kSteps, executor->chooser()->most_steps());
    SamplingOptions greedy;
    greedy.temperature = 0;
    const std::vector<TokenChoice> choices(size,
                                           TokenChoice{&greedy, std::span(tokens).first(1), 0});
    std::vector<TokenId> chosen(std::size_t{steps} * size);
    const auto times = time_all(nullptr, [&] {
      const Batch batch{tokens, slices, wanted};
      if (prefill) {
        executor->forward(batch, logits);
      } else {
        executor->chooser()->choose(batch, choices, steps, chosen);
      }
    });
    report(c, test, prefill ? size : steps, depth, prefill ? 1 : size, times, 0);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "usage: cuda_bench SHAPE TYPE decode|generate|prefill|rows [NUMBERS...]\n");
    return 2;
  }
  try {
    const auto type = element_type_from_name(argv[2]);
    if (!type) throw Error(ErrorCode::invalid_argument, fmt::format("no type {}", argv[2]));
    Case c{argv[1], argv[2], bench_decoder(argv[1], *type)};
    if (const std::string_view last = argv[argc - 1]; last.starts_with("kv=")) {
      for (const KvPrecision kv : {KvPrecision::f32, KvPrecision::q8}) {
        if (last.substr(3) == name(kv)) c.kv = kv;
      }
      --argc;
    }
    const std::string_view test = argv[3];
    std::vector<std::uint32_t> numbers;
    for (int i = 4; i < argc; ++i) {
      numbers.push_back(static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10)));
    }
    if (test == "decode") {
      bench_decode(c, numbers.empty() ? std::vector<std::uint32_t>{0, 4096} : numbers);
    } else if (test == "generate") {
      bench_generate(c.shape, c.type, c.decoder,
                     numbers.empty() ? std::vector<std::uint32_t>{0} : numbers);
    } else if (test == "prefill") {
      bench_executor(c, test, 0, numbers.empty() ? std::vector<std::uint32_t>{4096} : numbers);
    } else {
      const std::uint32_t depth = numbers.empty() ? 512 : numbers.front();
      if (!numbers.empty()) numbers.erase(numbers.begin());
      bench_executor(c, test, depth, numbers.empty() ? std::vector<std::uint32_t>{32} : numbers);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "cuda_bench: {}\n", error.what());
    return 1;
  }
  return 0;
}
