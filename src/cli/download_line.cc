#include "cli/download_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace edgerunner::cli {
namespace {

using std::chrono::duration;

constexpr std::chrono::milliseconds kBetweenLines{100};
constexpr std::chrono::seconds kSpeedWindow{5};
constexpr std::size_t kBarWidth = 16;
constexpr std::size_t kNameWidth = 22;  // so that the whole line fits into 80 columns

std::string bar(double fraction) {
  const auto done = static_cast<std::size_t>(fraction * double(kBarWidth));
  return fmt::format("[{}{}]", std::string(done, '='), std::string(kBarWidth - done, ' '));
}

std::string format_time(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::min(seconds, 359999.0));
  const std::uint64_t hours = whole / 3600;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

// The end of a name says more than its beginning.
std::string shortened(std::string_view name) {
  if (name.size() <= kNameWidth) return std::string(name);
  return fmt::format("...{}", name.substr(name.size() - kNameWidth + 3));
}

}  // namespace

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array<const char*, 4> kUnits = {"kB", "MB", "GB", "TB"};
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1000;
  std::size_t unit = 0;
  while (value >= 999.95 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits.at(unit));
}

std::optional<std::string> DownloadLine::update(std::string_view name, std::uint64_t received,
                                                std::optional<std::uint64_t> total,
                                                Clock::time_point now) {
  if (!samples_.empty() && received < samples_.back().received) samples_.clear();  // another file
  const bool last = total && received >= *total;
  if (!samples_.empty() && !last && now - samples_.back().time < kBetweenLines) return std::nullopt;
  samples_.push_back({now, received});
  while (now - samples_.front().time > kSpeedWindow) samples_.pop_front();

  const double seconds = duration<double>(now - samples_.front().time).count();
  const double speed =
      seconds > 0 ? static_cast<double>(received - samples_.front().received) / seconds : 0;
  std::string line = shortened(name);
  if (total && *total > 0) {
    const double fraction = std::min(1.0, double(received) / double(*total));
    line += fmt::format(" {} {:.0f} % of {}", bar(fraction), 100 * fraction, format_bytes(*total));
  } else {
    line += fmt::format(" {}", format_bytes(received));
  }
  if (speed > 0) {
    line += fmt::format(" {}/s", format_bytes(static_cast<std::uint64_t>(speed)));
    if (total) {
      const auto left = static_cast<double>(*total - std::min(received, *total));
      line += fmt::format(" {}", format_time(left / speed));
    }
  }
  return line;
}

}  // namespace edgerunner::cli
