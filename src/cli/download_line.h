#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace edgerunner::cli {

// The line that shows how a download goes: a bar, how much, how fast, and the time left.
class DownloadLine {
 public:
  using Clock = std::chrono::steady_clock;

  // nullopt where what was drawn last is recent enough.
  std::optional<std::string> update(std::string_view name, std::uint64_t received,
                                    std::optional<std::uint64_t> total, Clock::time_point now);

 private:
  struct Sample {
    Clock::time_point time;
    std::uint64_t received;
  };
  std::deque<Sample> samples_;  // those drawn in the last seconds: the speed is theirs
};

// "4.9 GB", in powers of ten.
std::string format_bytes(std::uint64_t bytes);

}  // namespace edgerunner::cli
