#include "chat/local_time.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <ctime>

#include "edgerunner/error.h"

namespace edgerunner {
namespace {

constexpr std::size_t kLongestTime = std::size_t{1} << 20;  // a width in a format can be anything

std::tm to_tm(const LocalTime& time) {
  std::tm tm{};
  tm.tm_year = time.year - 1900;
  tm.tm_mon = time.month - 1;
  tm.tm_mday = time.day;
  tm.tm_hour = time.hour;
  tm.tm_min = time.minute;
  tm.tm_sec = time.second;
  std::tm filled = tm;
  timegm(&filled);  // the day of the week and of the year
  tm.tm_wday = filled.tm_wday;
  tm.tm_yday = filled.tm_yday;
  tm.tm_isdst = -1;
  return tm;
}

bool is_valid(const LocalTime& time) {
  const std::chrono::year_month_day date(std::chrono::year(time.year),
                                         std::chrono::month(static_cast<unsigned>(time.month)),
                                         std::chrono::day(static_cast<unsigned>(time.day)));
  return date.ok() && time.hour < 24 && time.minute < 60 && time.second < 60;
}

}  // namespace

LocalTime local_time_now() {
  const std::time_t now = std::time(nullptr);
  std::tm tm{};
  localtime_r(&now, &tm);
  return {.year = tm.tm_year + 1900,
          .month = tm.tm_mon + 1,
          .day = tm.tm_mday,
          .hour = tm.tm_hour,
          .minute = tm.tm_min,
          .second = tm.tm_sec};
}

LocalTime parse_local_time(std::string_view text) {
  constexpr std::string_view kPattern = "dddd-dd-ddTdd:dd:dd";
  bool good = text.size() == kPattern.size();
  for (std::size_t i = 0; good && i < text.size(); ++i) {
    good = kPattern[i] == 'd' ? text[i] >= '0' && text[i] <= '9' : text[i] == kPattern[i];
  }
  LocalTime time;
  if (good) {
    const auto number = [text](std::size_t at, std::size_t count) {
      int value = 0;
      std::from_chars(text.data() + at, text.data() + at + count, value);
      return value;
    };
    time = {.year = number(0, 4),
            .month = number(5, 2),
            .day = number(8, 2),
            .hour = number(11, 2),
            .minute = number(14, 2),
            .second = number(17, 2)};
    good = is_valid(time);
  }
  if (!good) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}' is not a time, as in 2026-01-02T03:04:05", text));
  }
  return time;
}

std::string format_time(const LocalTime& time, std::string_view format) {
  // Microseconds and time zones are Python's own; a time of ours has neither.
  std::string plain;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      plain += format[i];
      continue;
    }
    const char kind = format[++i];
    if (kind == 'f') {
      plain += "000000";
    } else if (kind != 'z' && kind != 'Z') {
      plain += '%';
      plain += kind;
    }
  }
  if (plain.empty()) return {};
  const std::tm tm = to_tm(time);
  plain += '.';  // so that an empty result can be told from a buffer that is too small
  std::string buffer(plain.size() * 4 + 128, '\0');
  std::size_t written = 0;
  while ((written = std::strftime(buffer.data(), buffer.size(), plain.c_str(), &tm)) == 0) {
    if (buffer.size() > kLongestTime) {
      throw Error(ErrorCode::invalid_argument, "strftime_now: the format gives a text too long");
    }
    buffer.resize(buffer.size() * 2);
  }
  buffer.resize(written - 1);
  return buffer;
}

}  // namespace edgerunner
