#include "runtime/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/cpu_features.h"
#include "edgerunner/error.h"

namespace edgerunner {
namespace {

constexpr std::uint32_t kPagesForFurtherSequence = 8;
constexpr std::uint32_t kSharers = 32;  // sequences that may guess a token each, at least

void require_range(const char* option, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} is {}; it must be from {} to {}", option, value, low, high));
}

void check_options(const ModelOptions& options, std::uint32_t trained_context) {
  require_range("threads", options.threads, 0, 1024);
  require_range("prefill_chunk", options.prefill_chunk, 0, 32768);
  require_range("max_sequences", options.max_sequences, 1, 1024);
  require_range("draft_tokens", options.speculation.draft_tokens, 1, 64);
  const double confidence = options.speculation.draft_confidence;
  if (!(confidence >= 0 && confidence <= 1)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("draft_confidence is {}; it must be from 0 to 1", confidence));
  }
  if (options.context > trained_context) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a context of {} tokens is wanted, but the model was trained for {}; "
                            "ask for at most that",
                            options.context, trained_context));
  }
}

// Rows of a pass that guesses may take. Those of several sequences share them: the more sequences
// decode together, the less a further row comes for nothing.
std::uint32_t draft_rows(const ModelOptions& options) {
  if (!options.speculation.enabled()) return 0;
  return std::max(options.speculation.draft_tokens, std::min(options.max_sequences, kSharers));
}

// Pages that a context needs, and those that are good to have beside them.
struct Pages {
  std::uint32_t needed;
  std::uint32_t further;
};

Pages plan_pages(std::uint32_t context, const ModelOptions& options) {
  const std::uint32_t needed = pages_for(context);
  if (options.cache_tokens > 0) {
    const std::uint32_t asked = pages_for(options.cache_tokens);
    return {std::max(needed, asked), 0};
  }
  const std::uint32_t others = options.max_sequences - 1;
  const std::uint64_t wanted =
      std::max<std::uint64_t>(needed, std::uint64_t{kPagesForFurtherSequence} * others);
  const std::uint64_t useful = std::uint64_t{needed} * others;
  return {needed, static_cast<std::uint32_t>(std::min(wanted, useful))};
}

class Planner {
 public:
  Planner(const ModelOptions& options, const MemoryPlanInput& input)
      : options_(options), input_(input), chunk_(options.prefill_chunk) {
    if (chunk_ != 0) return;
    chunk_ = fitting_chunk(input.prefill_chunk, [this](std::uint32_t chunk) {
      chunk_ = chunk;
      const MemoryPlan whole = plan(wanted_context(), false);
      return !input_.available || (fits(whole) && whole.scratch_bytes <= *input_.available / 16);
    });
  }

  // Before anything is known of memory.
  std::uint32_t wanted_context() const {
    return options_.context != 0 ? options_.context
                                 : std::min(input_.trained_context, kDefaultContext);
  }

  MemoryPlan plan(std::uint32_t context, bool with_further_pages) const {
    const Pages pages = plan_pages(context, options_);
    MemoryPlan plan;
    plan.context = context;
    const std::uint32_t chunk = std::min(chunk_, context);
    const std::uint32_t logit_rows = options_.max_sequences + draft_rows(options_);
    plan.executor = {
        .precision = options_.precision,
        .kv = options_.kv.value_or(default_kv(options_.precision)),
        .threads = options_.threads > 0 ? options_.threads : available_cores(),
        .max_rows = chunk + logit_rows,
        .max_logit_rows = logit_rows,
        .pages = pages.needed + (with_further_pages ? pages.further : 0),
        .max_context = context,
        .adapter_floats = input_.adapter_floats,
        .adapters = input_.adapters,
    };
    const MemoryNeed need = input_.need(plan.executor);
    plan.weights_bytes = input_.weights_bytes;
    plan.cache_bytes = need.cache_bytes;
    plan.scratch_bytes =
        need.scratch_bytes + std::uint64_t{logit_rows} * input_.vocab_size * sizeof(float);
    return plan;
  }

  static std::uint64_t total(const MemoryPlan& plan) {
    return plan.weights_bytes + plan.cache_bytes + plan.scratch_bytes;
  }

  bool fits(const MemoryPlan& plan) const {
    return !input_.available || total(plan) <= *input_.available;
  }

  // The longest context up to `limit` that fits, in whole pages unless it is the limit; 0: none.
  std::uint32_t longest(std::uint32_t limit) const {
    if (fits(plan(limit, false))) return limit;
    std::uint32_t fitting = 0;  // pages
    std::uint32_t excessive = pages_for(limit);
    while (excessive - fitting > 1) {
      const std::uint32_t middle = fitting + (excessive - fitting) / 2;
      (fits(plan(middle * kPageTokens, false)) ? fitting : excessive) = middle;
    }
    return fitting * kPageTokens;
  }

  [[noreturn]] void refuse(const MemoryPlan& plan, std::uint32_t longest_context) const {
    constexpr double kMebibyte = 1 << 20;
    const auto mib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / kMebibyte; };
    const std::string advice =
        longest_context > 0
            ? fmt::format("a context of {} tokens would fit", longest_context)
            : std::string("no context would fit; free memory or take a smaller model");
    throw Error(
        ErrorCode::out_of_memory,
        fmt::format(
            "the model does not fit with a context of {} tokens: it takes {:.1f} MiB "
            "(weights {:.1f}, cache {:.1f}, scratch {:.1f}) and {:.1f} MiB are available; {}",
            plan.context, mib(total(plan)), mib(plan.weights_bytes), mib(plan.cache_bytes),
            mib(plan.scratch_bytes), mib(input_.available.value_or(0)), advice));
  }

 private:
  const ModelOptions& options_;
  const MemoryPlanInput& input_;
  std::uint32_t chunk_;
};

}  // namespace

std::uint32_t fitting_chunk(std::uint32_t usual, const std::function<bool(std::uint32_t)>& fits) {
  constexpr std::uint32_t kLeast = 512;
  std::uint32_t chunk = usual;
  while (chunk > kLeast && !fits(chunk)) chunk = std::max(kLeast, chunk / 2);
  return chunk;
}

MemoryPlan plan_memory(const ModelOptions& options, const MemoryPlanInput& input) {
  check_options(options, input.trained_context);
  const Planner planner(options, input);
  std::uint32_t context = options.context;
  if (context == 0) {
    const std::uint32_t wanted = planner.wanted_context();
    context = planner.longest(wanted);
    if (context == 0) planner.refuse(planner.plan(wanted, false), 0);
  }
  MemoryPlan generous = planner.plan(context, true);
  if (planner.fits(generous)) return generous;
  MemoryPlan least = planner.plan(context, false);
  if (planner.fits(least)) return least;
  planner.refuse(least, planner.longest(context));
}

MemoryPlan plan_context(const ModelOptions& options, const MemoryPlanInput& input) {
  return Planner(options, input).plan(options.context, false);
}

}  // namespace edgerunner
