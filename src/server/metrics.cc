#include "server/metrics.h"

#include <fmt/format.h>

#include <algorithm>

namespace edgerunner::server {
namespace {

void write_value(std::string& out, const char* type, const char* name, const char* help,
                 std::uint64_t value) {
  out += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0} {3}\n", name, help, type, value);
}

}  // namespace

void Histogram::observe(double seconds) {
  const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
  ++counts_[static_cast<std::size_t>(bound - kBounds.begin())];
  sum_.fetch_add(seconds);
}

void Histogram::write(std::string& out, const char* name, const char* help) const {
  out += fmt::format("# HELP {0} {1}\n# TYPE {0} histogram\n", name, help);
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < kBounds.size(); ++i) {
    count += counts_[i];
    out += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, kBounds[i], count);
  }
  count += counts_.back();
  out += fmt::format("{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", name, count,
                     sum_.load());
}

void Metrics::count_answer(unsigned status) {
  const std::lock_guard lock(mutex_);
  ++answers_[status];
}

void Metrics::count_generation(const Summary& summary) {
  prompt_tokens_ += summary.prompt_tokens;
  reused_tokens_ += summary.reused_tokens;
  generated_tokens_ += summary.generated_tokens;
  drafted_tokens_ += summary.drafted_tokens;
  accepted_tokens_ += summary.accepted_tokens;
  if (summary.finish_reason == FinishReason::cancelled) {
    ++cancelled_;
    return;
  }
  first_token_.observe(summary.time_to_first_token_s);
  generation_.observe(summary.time_to_first_token_s + summary.decode_seconds);
  if (summary.decode_tps > 0) per_token_.observe(1 / summary.decode_tps);
}

std::string Metrics::text(const SchedulerStatus& status) const {
  std::string out;
  write_value(out, "counter", "edgerunner_prompt_tokens_total", "Prompt tokens, reused ones too.",
              prompt_tokens_);
  write_value(out, "counter", "edgerunner_reused_tokens_total",
              "Prompt tokens that were found in the cache.", reused_tokens_);
  write_value(out, "counter", "edgerunner_generated_tokens_total", "Tokens generated.",
              generated_tokens_);
  write_value(out, "counter", "edgerunner_drafted_tokens_total", "Tokens guessed ahead.",
              drafted_tokens_);
  write_value(out, "counter", "edgerunner_accepted_tokens_total",
              "Tokens guessed ahead that were right.", accepted_tokens_);
  write_value(out, "counter", "edgerunner_generations_cancelled_total",
              "Generations that ended because their client went away.", cancelled_);
  write_value(out, "counter", "edgerunner_requests_rejected_total",
              "Requests refused because the queue was full.", rejected_);
  write_value(out, "gauge", "edgerunner_sequences_running", "Sequences being computed.",
              status.running);
  write_value(out, "gauge", "edgerunner_sequences_waiting", "Sequences in the queue.",
              status.waiting);
  write_value(out, "gauge", "edgerunner_cache_pages", "Pages of the KV cache.", status.pages);
  write_value(out, "gauge", "edgerunner_cache_pages_used", "Pages that running sequences hold.",
              status.used_pages);
  write_value(out, "gauge", "edgerunner_cache_pages_kept",
              "Pages that hold a prefix which no running sequence uses.", status.cached_pages);
  first_token_.write(out, "edgerunner_time_to_first_token_seconds",
                     "From a request to its first token.");
  per_token_.write(out, "edgerunner_time_per_token_seconds",
                   "Mean time of a token after the first, by generation.");
  generation_.write(out, "edgerunner_generation_seconds", "From a request to its last token.");
  out += "# HELP edgerunner_answers_total Answers by status.\n";
  out += "# TYPE edgerunner_answers_total counter\n";
  const std::lock_guard lock(mutex_);
  for (const auto& [code, count] : answers_) {
    out += fmt::format("edgerunner_answers_total{{status=\"{}\"}} {}\n", code, count);
  }
  return out;
}

}  // namespace edgerunner::server
