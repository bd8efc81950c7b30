#pragma once

#include <string>
#include <string_view>

namespace edgerunner {

// A time on the clock on the wall, in no time zone in particular.
struct LocalTime {
  int year = 1970;
  int month = 1;  // 1 to 12
  int day = 1;
  int hour = 0;
  int minute = 0;
  int second = 0;
};

LocalTime local_time_now();

// "2026-01-02T03:04:05". Throws Error(invalid_argument) that shows what is no time.
LocalTime parse_local_time(std::string_view text);

// As Python's datetime.strftime in the C locale.
std::string format_time(const LocalTime& time, std::string_view format);

}  // namespace edgerunner
