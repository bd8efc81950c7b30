#include "base/cgroup.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace edgerunner {
namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t begin = text.find_first_not_of(separators);
    if (begin == std::string_view::npos) return parts;
    text.remove_prefix(begin);
    const std::size_t length = std::min(text.find_first_of(separators), text.size());
    parts.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
}

std::optional<std::uint64_t> to_number(std::string_view word) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> read_number(const fs::path& path) {
  const std::string text = read_text(path);
  const auto words = split(text, " \n");
  return words.empty() ? std::nullopt : to_number(words[0]);
}

// The sum of the named lines of a "name value" file such as memory.stat.
std::uint64_t sum_of_lines(const fs::path& path, std::string_view first, std::string_view second) {
  const std::string text = read_text(path);
  std::uint64_t sum = 0;
  for (const std::string_view line : split(text, "\n")) {
    const auto words = split(line, " ");
    if (words.size() == 2 && (words[0] == first || words[0] == second)) {
      sum += to_number(words[1]).value_or(0);
    }
  }
  return sum;
}

template <typename T>
void lower(std::optional<T>& limit, T value) {
  limit = limit ? std::min(*limit, value) : value;
}

void apply_cpu(CgroupLimits& limits, std::optional<std::uint64_t> quota,
               std::optional<std::uint64_t> period) {
  if (!quota || !period || *quota == 0 || *period == 0) return;
  lower(limits.cpus, static_cast<double>(*quota) / static_cast<double>(*period));
}

void apply_memory(CgroupLimits& limits, std::optional<std::uint64_t> limit,
                  std::optional<std::uint64_t> usage, std::uint64_t file_cache) {
  // Version 1 writes "no limit" as the largest multiple of the page size below 2^63.
  constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 62;
  if (!limit || !usage || *limit >= kUnlimited) return;
  const std::uint64_t used = *usage - std::min(file_cache, *usage);
  lower(limits.memory_free, *limit - std::min(used, *limit));
}

void apply_version2(CgroupLimits& limits, const fs::path& group) {
  const std::string cpu_max = read_text(group / "cpu.max");  // "QUOTA PERIOD" or "max PERIOD"
  if (const auto words = split(cpu_max, " \n"); words.size() == 2) {
    apply_cpu(limits, to_number(words[0]), to_number(words[1]));
  }
  apply_memory(limits, read_number(group / "memory.max"), read_number(group / "memory.current"),
               sum_of_lines(group / "memory.stat", "active_file", "inactive_file"));
}

void apply_version1(CgroupLimits& limits, const fs::path& group) {
  apply_cpu(limits, read_number(group / "cpu.cfs_quota_us"),  // -1, no number, where unlimited
            read_number(group / "cpu.cfs_period_us"));
  apply_memory(limits, read_number(group / "memory.limit_in_bytes"),
               read_number(group / "memory.usage_in_bytes"),
               sum_of_lines(group / "memory.stat", "total_active_file", "total_inactive_file"));
}

// Visits a group and its ancestors up to the mount point. A group that lies outside what is mounted
// here (a container that sees its own group as the root) has only the mount point to look at.
template <typename Visit>
void for_each_ancestor(const fs::path& mount, std::string_view group, Visit visit) {
  fs::path relative = fs::path(group).relative_path().lexically_normal();
  if (!relative.empty() && *relative.begin() == "..") relative.clear();
  for (; !relative.empty() && relative != "."; relative = relative.parent_path()) {
    visit(mount / relative);
  }
  visit(mount);
}

}  // namespace

CgroupLimits cgroup_limits(const fs::path& mount, std::string_view membership) {
  CgroupLimits limits;
  for (std::string_view line : split(membership, "\n")) {  // hierarchy:controllers:group
    const std::size_t first = line.find(':');
    if (first == std::string_view::npos) continue;
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string_view group = line.substr(second + 1);
    if (controllers.empty()) {
      for_each_ancestor(mount, group, [&](const fs::path& p) { apply_version2(limits, p); });
      continue;
    }
    for (const std::string_view controller : split(controllers, ",")) {
      if (controller != "cpu" && controller != "memory") continue;
      for_each_ancestor(mount / controller, group,
                        [&](const fs::path& p) { apply_version1(limits, p); });
    }
  }
  return limits;
}

CgroupLimits cgroup_limits() {
  return cgroup_limits("/sys/fs/cgroup", read_text("/proc/self/cgroup"));
}

}  // namespace edgerunner
