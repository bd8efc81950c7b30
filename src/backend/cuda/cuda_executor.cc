#include "backend/cuda/cuda_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arch/beyond_plain.h"
#include "backend/cuda/adapters.h"
#include "backend/cuda/buffers.h"
#include "backend/cuda/choice_settings.h"
#include "backend/cuda/chooser.h"
#include "backend/cuda/decode_plan.h"
#include "backend/cuda/decode_timeline.h"
#include "backend/cuda/device_limits.h"
#include "backend/cuda/f32_pass.h"
#include "backend/cuda/few_rows_pass.h"
#include "backend/cuda/half_pass.h"
#include "backend/cuda/ops.h"
#include "backend/cuda/pass_timer.h"
#include "backend/cuda/rotations.h"
#include "backend/cuda/step_graph.h"
#include "edgerunner/error.h"

namespace edgerunner::cuda {
namespace {

// Of the free memory; the rest is for what the driver takes for code and stacks.
std::uint64_t usable_bytes(const DeviceProperties& device) {
  const std::uint64_t spare = device.total_bytes / 50;
  return device.free_bytes > spare ? device.free_bytes - spare : 0;
}

class CudaExecutor final : public Executor, public TokenChooser, public Profilable {
 public:
  CudaExecutor(const Decoder& decoder, const ExecutorOptions& options, WeightSource source)
      : spec_(decoder.spec),
        options_(options),
        device_(fitting_device(decoder, options)),
        weights_(decoder, source, options.on_progress),
        cache_(decoder.spec, options),
        rotations_(decoder.spec, options),
        scratch_(decoder.spec, options),
        upload_(options, attention_cut(decoder.spec)),
        adapters_(options),
        chooser_(decoder.spec, options),
        logits_(std::size_t{options.max_logit_rows} * spec_.vocab_size * sizeof(float)),
        plain_(context()) {
    const auto loading = std::chrono::steady_clock::now() - begun_;
    options_.on_progress = nullptr;  // the caller's, who may be gone
    info_.backend = "cuda";
    info_.isa = fmt::format("sm_{}{}", device_.major, device_.minor);
    info_.kernels.push_back(fmt::format("device: {}, {} multiprocessors",
                                        static_cast<const char*>(device_.name),
                                        device_.multiprocessors));
    info_.kernels.emplace_back("all types: dequantised in registers, f32 arithmetic");
    if (options.kv == KvPrecision::q8) {
      info_.kernels.emplace_back("KV cache q8: e4m3 with a scale for each position and KV head");
    }
    if (options.precision == Precision::fast && HalfScratch::supports(spec_)) {
      half_.emplace(spec_, options_);
      wide_.emplace(context(), device_);
      info_.kernels.emplace_back("2 rows and more: tensor cores, f16 operands, f32 sums");
      if (FewRowsPass::supports(weights_)) {
        few_.emplace(context(), options_, device_);
        info_.kernels.push_back(
            fmt::format("up to {} rows: weights read once, as they stand", few_->most_rows()));
      }
    }
    if (options.precision == Precision::fast && beyond_plain(decoder).empty() &&
        DecodePlan::supports(spec_, options_, device_)) {
      decode_.emplace(spec_, options_, device_, weights_, cache_, rotations_.main_frequencies());
      info_.kernels.emplace_back("decode, one row: one persistent kernel, 8-bit activations");
    }
    warm_up(loading);
  }

  void forward(const Batch& batch, std::span<float> logits) override {
    check_batch(batch, spec_, options_, logits.size());
    timer_.begin(stream_);
    const DeviceBatch rows = begin(batch);
    const auto wanted = static_cast<std::uint32_t>(batch.logit_rows.size());
    compute(rows, wanted);
    if (wanted != 0) {
      check(cudaMemcpyAsync(logits_.as<float>(), scratch_.logits.as<float>(),
                            std::size_t{wanted} * spec_.vocab_size * sizeof(float),
                            cudaMemcpyDeviceToHost, stream_),
            "fetching logits");
    }
    check(cudaGetLastError(), "starting a forward pass");
    stream_.synchronize();
    if (decodes(rows) && wanted > 0 && timer_.running()) {
      timer_.finish(timeline_->shares());
    } else {
      timer_.finish();
    }
    std::memcpy(logits.data(), logits_.as<float>(),
                std::size_t{wanted} * spec_.vocab_size * sizeof(float));
  }

  void embed(const Batch& batch, std::span<float> hidden) override {
    check_batch(batch, spec_, options_, 0);
    if (hidden.size() < batch.tokens.size() * spec_.dim) {
      throw Error(ErrorCode::invalid_argument, "the buffer of hidden states is too small");
    }
    const auto rows = static_cast<std::uint32_t>(batch.tokens.size());
    visit_pass(begin(batch), [](const auto&) {});
    context().norm(weights_.final_norm(), rows, nullptr, stream_);
    check(cudaMemcpyAsync(hidden.data(), scratch_.normed.as<float>(),
                          std::size_t{rows} * spec_.dim * sizeof(float), cudaMemcpyDeviceToHost,
                          stream_),
          "fetching hidden states");
    check(cudaGetLastError(), "starting a forward pass");
    stream_.synchronize();
  }

  TokenChooser* chooser() override { return this; }
  bool can_choose(const SamplingOptions& options) const override { return can_choose_by(options); }
  std::uint32_t most_steps() const override { return kMostSteps; }

  void choose(const Batch& batch, std::span<const TokenChoice> choices, std::uint32_t steps,
              std::span<TokenId> tokens) override {
    const auto wanted = static_cast<std::uint32_t>(batch.logit_rows.size());
    check_batch(batch, spec_, options_, std::size_t{wanted} * spec_.vocab_size);
    check_steps(batch, choices.size(), steps, tokens.size());
    const DeviceBatch rows = begin(batch, steps - 1);
    chooser_.begin(choices, scratch_.logits.as<float>(), stream_);
    const auto launch = [&] {
      compute(rows, wanted);
      chooser_.launch(upload_.tokens(), upload_.positions(), stream_);
    };
    // Steps of one persistent kernel are one launch anyway.
    const bool replayed = few_.has_value() && rows.rows <= few_->most_rows() && !decodes(rows) &&
                          rows.rows == batch.sequences.size() && rows.rows == wanted;
    const StepKey key{rows.rows, upload_.part_count(), chooser_.changed(), chooser_.drawn(),
                      adapters_.used()};
    for (std::uint32_t step = 0; step < steps; ++step) {
      if (replayed) {
        graphs_.run(key, stream_, launch);
      } else {
        launch();
      }
    }
    const std::span<const TokenId> chosen = chooser_.fetch(steps, stream_);
    check(cudaGetLastError(), "starting a forward pass");
    stream_.synchronize();
    std::copy(chosen.begin(), chosen.end(), tokens.begin());
  }

  void copy_page(PageId from, PageId to, std::uint32_t tokens) override {
    for (std::size_t i = 0; i < spec_.layers.size(); ++i) {
      launch_copy_page(attention_shape(spec_.layers[i]), cache_.layer(i), from, to, tokens,
                       stream_);
    }
    check(cudaGetLastError(), "copying a page");
  }

  const ExecutorInfo& info() const override { return info_; }
  const ExecutorOptions& options() const override { return options_; }

  Profilable* profilable() override { return this; }
  void record(OperationTimes* times) override {
    constexpr std::uint32_t kLapsOfALayer = 8;
    const auto layers = static_cast<std::uint32_t>(spec_.layers.size());
    timer_.record(times, kLapsOfALayer * layers + 3);
    timeline_.reset();
    if (times != nullptr && decode_) timeline_.emplace(decode_->blocks(), layers);
  }
  Arithmetic arithmetic(ElementType /*weights*/, std::uint32_t rows) const override {
    if (decode_ && rows == 1) return Arithmetic::int8;
    return half_ ? Arithmetic::half : Arithmetic::f32;
  }
  Arithmetic attention_arithmetic() const override {
    const bool on_tensor_cores =
        half_ && tensor_attention_supports(attention_shape(spec_.layers.front()), options_.kv);
    return on_tensor_cores ? Arithmetic::half : Arithmetic::f32;
  }
  MachineLimits measure_limits() override { return measure_device_limits(device_); }

 private:
  // Refuses what would not fit before anything is allocated.
  static DeviceProperties fitting_device(const Decoder& decoder, const ExecutorOptions& options) {
    const DeviceProperties device = device_properties();
    const MemoryNeed need = cuda_memory_need(decoder.spec, options);
    const std::uint64_t weights = device_weight_bytes(decoder.weights);
    const std::uint64_t available = usable_bytes(device);
    const std::uint64_t fixed = weights + need.scratch_bytes;
    if (fixed + need.cache_bytes > available) {
      constexpr double kMiB = 1048576.0;
      const std::uint64_t fitting =
          available < fixed ? 0 : (available - fixed) / (need.cache_bytes / options.pages);
      throw Error(
          ErrorCode::out_of_memory,
          fmt::format(
              "the model does not fit on the GPU: weights {:.0f} MiB + cache {:.0f} "
              "MiB + scratch {:.0f} MiB, but {:.0f} MiB of {:.0f} can be used; {}",
              static_cast<double>(weights) / kMiB, static_cast<double>(need.cache_bytes) / kMiB,
              static_cast<double>(need.scratch_bytes) / kMiB, static_cast<double>(available) / kMiB,
              static_cast<double>(device.total_bytes) / kMiB,
              fitting == 0
                  ? "no context would fit; take a smaller model"
                  : fmt::format("a context of {} tokens would fit", fitting * kPageTokens)));
    }
    return device;
  }

  void check_steps(const Batch& batch, std::size_t choices, std::uint32_t steps,
                   std::size_t tokens) const {
    const auto require = [](bool ok, const char* what) {
      if (!ok) throw Error(ErrorCode::invalid_argument, fmt::format("choosing tokens: {}", what));
    };
    require(choices == batch.logit_rows.size() && choices > 0, "a choice for each row of logits");
    require(steps > 0 && steps <= kMostSteps, "steps are out of range");
    require(tokens == choices * steps, "room for a token of each row and step");
    if (steps == 1) return;
    require(choices == batch.tokens.size(), "several steps want the logits of every row");
    for (const SequenceSlice& slice : batch.sequences) {
      require(slice.rows == 1, "several steps take one row of a sequence");
      const std::uint32_t end = slice.start + steps;
      require(end <= options_.max_context && pages_for(end) <= slice.pages.size(),
              "a page table is too short for the steps");
    }
  }

  // Brings a batch to the device, whose page tables reach `further` positions past the rows.
  DeviceBatch begin(const Batch& batch, std::uint32_t further = 0) {
    adapters_.begin(batch, stream_);
    return upload_.upload(batch, stream_, further);
  }

  // Whether the persistent kernel takes the rows.
  bool decodes(const DeviceBatch& rows) const {
    return decode_.has_value() && rows.rows == 1 && !adapters_.any();
  }

  // A forward pass; leaves the logits of the `wanted` rows on the device.
  void compute(const DeviceBatch& rows, std::uint32_t wanted) {
    if (decodes(rows)) {
      decode_->launch({rows.tokens, rows.positions, rows.pages,
                       wanted == 0 ? nullptr : scratch_.logits.as<float>(), nullptr, nullptr,
                       nullptr, nullptr, timer_.running() ? timeline_->device() : nullptr},
                      stream_);
      timer_.lap(Operation::other, stream_);
    } else {
      visit_pass(rows, [&](const auto& pass) {
        if (wanted != 0) pass.head(wanted, stream_);
      });
    }
  }

  // Runs every path once, so that the first request finds kernels loaded: one row, a few, and a
  // chunk, each with its token chosen, without adapters and with all of them. The cache's pages are
  // written again before anyone reads them.
  void warm_up(std::chrono::steady_clock::duration loading) {
    const auto begin = std::chrono::steady_clock::now();
    const std::uint32_t most = std::min(
        {options_.max_rows, options_.max_context, options_.pages * kPageTokens, kMostFewRows + 1});
    std::vector<PageId> pages(options_.pages);
    std::iota(pages.begin(), pages.end(), PageId{0});
    SamplingOptions sampling;
    sampling.temperature = 1;
    sampling.top_k = 40;
    sampling.presence_penalty = 1;
    AdapterSet all;
    for (const LoraAdapter* adapter : options_.adapters) all.uses.push_back({adapter, 1});
    for (const AdapterSet* adapters :
         {static_cast<const AdapterSet*>(nullptr), &std::as_const(all)}) {
      if (adapters != nullptr && adapters->uses.empty()) break;
      for (const std::uint32_t wanted : {1U, 8U, 32U, 64U, kRowTile, most}) {
        const std::uint32_t rows = std::min(wanted, most);
        const std::vector<TokenId> tokens(rows);
        const SequenceSlice slice{rows, 0, pages, adapters};
        const std::uint32_t last = rows - 1;
        const TokenChoice choice{&sampling, tokens, 0};
        TokenId chosen = kNoToken;
        choose({tokens, {&slice, 1}, {&last, 1}}, {&choice, 1}, 1, {&chosen, 1});
      }
      if (few_.has_value()) warm_up_decoding(sampling, adapters);
    }
    if (few_.has_value()) {
      info_.kernels.emplace_back(graphs_.works()
                                     ? "decoding several rows: a step is one CUDA graph"
                                     : "decoding several rows: kernel by kernel, as no CUDA graph "
                                       "could be made of a step");
    }
    using Milliseconds = std::chrono::duration<double, std::milli>;
    info_.kernels.push_back(fmt::format(
        "weights on the device after {:.0f} ms; warm-up {:.0f} ms", Milliseconds(loading).count(),
        Milliseconds(std::chrono::steady_clock::now() - begin).count()));
  }

  // Decodes as many sequences as there can be, so that the graphs of steps are made. All write the
  // same page.
  void warm_up_decoding(const SamplingOptions& sampling, const AdapterSet* adapters) {
    const std::uint32_t rows = std::min(few_->most_rows(), options_.max_logit_rows);
    const std::uint32_t steps = std::min(3U, options_.max_context);
    const PageId page = 0;
    const std::vector<TokenId> tokens(rows);
    const std::vector<SequenceSlice> slices(rows, SequenceSlice{1, 0, {&page, 1}, adapters});
    std::vector<std::uint32_t> wanted(rows);
    std::iota(wanted.begin(), wanted.end(), 0U);
    const std::vector<TokenChoice> choices(rows,
                                           TokenChoice{&sampling, std::span(tokens).first(1), 0});
    std::vector<TokenId> chosen(std::size_t{steps} * rows);
    choose({tokens, slices, wanted}, choices, steps, chosen);
  }

  // Takes the rows through all layers by the pass that is fastest for so many, then visits it for
  // what comes after them.
  template <typename Visit>
  void visit_pass(const DeviceBatch& rows, const Visit& visit) {
    launch_embed(weights_.embedding(), rows, spec_.embedding_scale, scratch_.x.as<float>(),
                 stream_);
    adapters_.apply_embedding(rows, spec_.embedding_scale, scratch_.x.as<float>(), stream_);
    rotations_.launch(rows, stream_);
    timer_.lap(Operation::embedding, stream_);
    const auto through = [&](const auto& pass) {
      pass.layers(rows, stream_);
      visit(pass);
    };
    if (few_.has_value() && rows.rows <= few_->most_rows()) {
      through(*few_);
    } else if (wide_.has_value() && rows.rows > 1) {
      through(*wide_);
    } else {
      through(plain_);
    }
  }

  PassContext context() {
    return {spec_,   weights_,  cache_, rotations_, scratch_, half_ ? &*half_ : nullptr,
            upload_, adapters_, timer_, options_.kv};
  }

  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  const DecoderSpec& spec_;
  ExecutorOptions options_;
  ExecutorInfo info_;
  DeviceProperties device_;
  Stream stream_;
  DeviceWeights weights_;
  CachePool cache_;
  Rotations rotations_;
  Scratch scratch_;
  std::optional<HalfScratch> half_;
  BatchUpload upload_;
  Adapters adapters_;
  Chooser chooser_;
  StepGraphs graphs_;
  PassTimer timer_;
  PinnedBuffer logits_;  // [max_logit_rows, vocab]
  F32Pass plain_;
  std::optional<HalfPass> wide_;
  std::optional<FewRowsPass> few_;
  std::optional<DecodePlan> decode_;
  std::optional<DecodeTimeline> timeline_;  // while times are recorded
};

}  // namespace

std::unique_ptr<Executor> make_executor(const Decoder& decoder, const ExecutorOptions& options,
                                        WeightSource source) {
  return std::make_unique<CudaExecutor>(decoder, options, source);
}

}  // namespace edgerunner::cuda

namespace edgerunner {

std::unique_ptr<Executor> make_cuda_executor(const Decoder& decoder,
                                             const ExecutorOptions& options) {
  const bool shape_only = decoder.weights.embedding.data.empty();
  return cuda::make_executor(decoder, options,
                             shape_only ? cuda::WeightSource::random : cuda::WeightSource::file);
}

std::uint64_t cuda_weight_bytes(const Decoder& decoder) {
  return cuda::device_weight_bytes(decoder.weights);
}

bool cuda_available() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
}

std::optional<std::uint64_t> cuda_available_memory() {
  if (!cuda_available()) return std::nullopt;
  return cuda::usable_bytes(cuda::device_properties());
}

MemoryNeed cuda_memory_need(const DecoderSpec& spec, const ExecutorOptions& options) {
  return {cuda::CachePool::bytes(spec, options),
          cuda::Scratch::bytes(spec, options) + cuda::BatchUpload::bytes(options) +
              cuda::Rotations::bytes(spec, options) + cuda::Adapters::bytes(options) +
              cuda::Chooser::bytes(spec, options) +
              (options.precision == Precision::fast && cuda::HalfScratch::supports(spec)
                   ? cuda::HalfScratch::bytes(spec, options)
                   : 0)};
}

}  // namespace edgerunner
