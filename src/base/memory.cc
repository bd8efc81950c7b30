#include "base/memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string>

#include "base/cgroup.h"

namespace edgerunner {
namespace {

std::string read_text(const char* path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

std::optional<std::uint64_t> kilobyte_line(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(name) || line.substr(name.size(), 1) != ":") continue;
    line.remove_prefix(name.size() + 1);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    std::uint64_t kilobytes = 0;
    const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), kilobytes);
    if (error != std::errc() || line.substr(rest - line.data()) != " kB") return std::nullopt;
    return kilobytes * 1024;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> available_memory() {
  auto available = kilobyte_line(read_text("/proc/meminfo"), "MemAvailable");
  if (const auto left = cgroup_limits().memory_free) {
    available = std::min(available.value_or(*left), *left);
  }
  return available;
}

std::optional<std::uint64_t> peak_resident_bytes() {
  return kilobyte_line(read_text("/proc/self/status"), "VmHWM");
}

}  // namespace edgerunner
