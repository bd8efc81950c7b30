#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace edgerunner {

// What the control groups of a process leave it, or nullopt where they set no limit.
struct CgroupLimits {
  std::optional<double> cpus;                // processor time a second, in cores
  std::optional<std::uint64_t> memory_free;  // limit less what is in use; file cache counts as free
};

// Reads the limits of control groups, version 2 and 1, and of all their ancestors, below the folder
// where they are mounted. `membership` is the text of /proc/PID/cgroup. A file that is missing or
// can't be read as a number sets no limit.
CgroupLimits cgroup_limits(const std::filesystem::path& mount, std::string_view membership);

// The limits of this process.
CgroupLimits cgroup_limits();

}  // namespace edgerunner
