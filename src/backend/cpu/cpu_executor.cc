#include "backend/cpu/cpu_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "backend/cpu/forward_pass.h"
#include "backend/cpu/lazy_memory.h"
#include "backend/cpu/limits/handover.h"
#include "backend/cpu/limits/machine_limits.h"
#include "base/cpu_features.h"

namespace edgerunner {
namespace {

// Sequences that decode together, or guesses that are checked at once, for the kernels' names.
constexpr std::uint32_t kFewRows = 8;

std::size_t workspace_bytes(const DecoderSpec& spec, const ExecutorOptions& options) {
  cpu::Workspace measured;
  return lay_out(nullptr, spec, options, measured);
}

// The matrices that products read, in the order of a forward pass; the head last.
std::vector<const Matrix*> matrices_of(const Weights& weights) {
  std::vector<const Matrix*> all;
  const auto add = [&](const Matrix& matrix) {
    if (!matrix.empty()) all.push_back(&matrix);
  };
  for (const LayerWeights& layer : weights.layers) {
    const AttentionWeights& a = layer.attention;
    const FeedForwardWeights& f = layer.feed_forward;
    const MixtureWeights& m = f.mixture;
    for (const Matrix* matrix :
         {&a.k, &a.v, &a.q, &a.o, &f.gate, &f.up, &f.down, &m.router, &m.gate, &m.up, &m.down,
          &m.shared_router, &m.shared_gate, &m.shared_up, &m.shared_down}) {
      add(*matrix);
    }
  }
  add(weights.head);
  return all;
}

std::vector<std::string> describe_kernels(const Decoder& decoder, const ExecutorOptions& options,
                                          const cpu::Kernels& kernels, Isa isa) {
  std::set<ElementType> types;
  for (const Matrix* matrix : matrices_of(decoder.weights)) types.insert(matrix->type);
  std::vector<std::string> lines;
  for (const ElementType type : types) {
    const cpu::ActivationFormat format = cpu::activation_format(type, options.precision);
    const std::string_view name = traits(type).name;
    lines.push_back(fmt::format("{} decode: {}", name, kernels.describe(type, format, 1)));
    lines.push_back(fmt::format("{} few rows: {}", name, kernels.describe(type, format, kFewRows)));
    lines.push_back(
        fmt::format("{} prefill: {}", name, kernels.describe(type, format, options.max_rows)));
  }
  lines.push_back(fmt::format("attention: {}, {} cache, f32 sums",
                              name(cpu::vector_kernels(isa).isa), name(options.kv)));
  return lines;
}

class CpuExecutor final : public Executor, private Profilable {
 public:
  CpuExecutor(const Decoder& decoder, const ExecutorOptions& options, Isa isa,
              cpu::InputObserver* observer = nullptr)
      : decoder_(decoder),
        options_(options),
        observer_(observer),
        kernels_(cpu::kernels(isa)),
        vectors_(cpu::vector_kernels(isa)),
        plan_(decoder.spec, options),
        cache_(decoder.spec, options.kv, options.pages),
        ropes_(decoder.spec, options.max_context),
        scratch_(workspace_bytes(decoder.spec, options)),
        pool_(options.threads) {
    lay_out(scratch_.data(), decoder.spec, options, workspace_);
    info_ = {"cpu", std::string(name(isa)), describe_kernels(decoder, options, kernels_, isa),
             pool_.size()};
  }

  void forward(const Batch& batch, std::span<float> logits) override { run(batch, logits, {}); }

  void embed(const Batch& batch, std::span<float> hidden) override { run(batch, {}, hidden); }

  void copy_page(PageId from, PageId to, std::uint32_t) override { cache_.copy_page(from, to); }

  const ExecutorInfo& info() const override { return info_; }
  const ExecutorOptions& options() const override { return options_; }
  Profilable* profilable() override { return this; }

 private:
  void run(const Batch& batch, std::span<float> logits, std::span<float> hidden) {
    if (times_ != nullptr) times_->begin();
    check_batch(batch, decoder_.spec, options_, logits.size());
    plan_.build(batch);
    const cpu::PassContext context{decoder_,
                                   options_.precision,
                                   options_.adapter_floats,
                                   kernels_,
                                   vectors_,
                                   plan_,
                                   workspace_,
                                   cache_,
                                   ropes_,
                                   batch,
                                   logits,
                                   hidden,
                                   times_,
                                   observer_};
    pool_.run([&](ThreadPool::Worker& worker) { cpu::ForwardPass(context, worker).run(); });
    ropes_.set_ready(std::max(ropes_.ready(), plan_.end_position()));
    if (times_ != nullptr) times_->lap(Operation::other);
  }

  void record(OperationTimes* times) override { times_ = times; }
  Arithmetic arithmetic(ElementType weights, std::uint32_t) const override {
    switch (cpu::activation_format(weights, options_.precision)) {
      case cpu::ActivationFormat::q8:
        return Arithmetic::int8;
      case cpu::ActivationFormat::bf16:
        return Arithmetic::half;
      case cpu::ActivationFormat::f32:
        break;
    }
    return Arithmetic::f32;
  }
  MachineLimits measure_limits() override {
    std::vector<std::span<const std::byte>> weights;
    for (const Matrix* matrix : matrices_of(decoder_.weights)) weights.push_back(matrix->data);
    const double before = measure_handover();
    MachineLimits limits = cpu::measure_limits(kernels_.isa, pool_.size(), weights);
    limits.handover = {before, measure_handover()};
    return limits;
  }
  double measure_handover() override { return cpu::measure_handover(pool_); }

  const Decoder& decoder_;
  ExecutorOptions options_;
  cpu::InputObserver* observer_;
  const cpu::Kernels& kernels_;
  const cpu::VectorKernels& vectors_;
  cpu::Plan plan_;
  cpu::KvPool cache_;
  cpu::RopeTables ropes_;
  cpu::LazyMemory scratch_;
  cpu::Workspace workspace_;
  ThreadPool pool_;
  ExecutorInfo info_;
  OperationTimes* times_ = nullptr;
};

}  // namespace

std::unique_ptr<Executor> cpu::make_executor(const Decoder& decoder, const ExecutorOptions& options,
                                             Isa isa) {
  return std::make_unique<CpuExecutor>(decoder, options, isa);
}

std::unique_ptr<Executor> cpu::make_observed_executor(const Decoder& decoder,
                                                      ExecutorOptions options,
                                                      InputObserver& observer) {
  options.precision = Precision::exact;
  return std::make_unique<CpuExecutor>(decoder, options, chosen_isa(), &observer);
}

std::unique_ptr<Executor> make_cpu_executor(const Decoder& decoder,
                                            const ExecutorOptions& options) {
  return cpu::make_executor(decoder, options, chosen_isa());
}

ExecutorInfo cpu_executor_info(const Decoder& decoder, const ExecutorOptions& options) {
  const Isa isa = chosen_isa();
  return {"cpu", std::string(name(isa)), describe_kernels(decoder, options, cpu::kernels(isa), isa),
          options.threads};
}

MemoryNeed cpu_memory_need(const DecoderSpec& spec, const ExecutorOptions& options) {
  MemoryNeed need;
  need.cache_bytes = std::uint64_t{cpu::KvPool::page_bytes(spec, options.kv)} * options.pages;
  need.scratch_bytes =
      workspace_bytes(spec, options) + cpu::RopeTables::bytes(spec, options.max_context);
  return need;
}

}  // namespace edgerunner
