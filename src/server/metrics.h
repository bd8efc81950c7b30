#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "edgerunner/generation.h"
#include "runtime/scheduler.h"

namespace edgerunner::server {

// Counts of durations up to bounds that suit both a token and a long answer. From any thread.
class Histogram {
 public:
  static constexpr std::array<double, 14> kBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                     0.25,  0.5,    1,     2.5,  5,     10,   60};

  void observe(double seconds);
  // In Prometheus's text form.
  void write(std::string& out, const char* name, const char* help) const;

 private:
  std::array<std::atomic<std::uint64_t>, kBounds.size() + 1> counts_{};  // the last: above all
  std::atomic<double> sum_ = 0;
};

// What the server has done since it started. From any thread.
class Metrics {
 public:
  void count_answer(unsigned status);
  void count_generation(const Summary& summary);
  void count_rejected() { ++rejected_; }

  // All of it in Prometheus's text form.
  std::string text(const SchedulerStatus& status) const;

 private:
  std::atomic<std::uint64_t> prompt_tokens_ = 0;
  std::atomic<std::uint64_t> reused_tokens_ = 0;
  std::atomic<std::uint64_t> generated_tokens_ = 0;
  std::atomic<std::uint64_t> drafted_tokens_ = 0;
  std::atomic<std::uint64_t> accepted_tokens_ = 0;
  std::atomic<std::uint64_t> cancelled_ = 0;
  std::atomic<std::uint64_t> rejected_ = 0;
  Histogram first_token_;
  Histogram per_token_;
  Histogram generation_;
  mutable std::mutex mutex_;                   // guards what follows
  std::map<unsigned, std::uint64_t> answers_;  // by status
};

}  // namespace edgerunner::server
