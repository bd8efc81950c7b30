#include "base/cgroup.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace edgerunner {
namespace {

namespace fs = std::filesystem;

// A folder that looks like a mounted control group file system.
class Cgroup : public ::testing::Test {
 protected:
  Cgroup()
      : mount_(fs::temp_directory_path() /
               ("edgerunner_cgroup_" + std::to_string(getpid()) + "_" +
                ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::create_directories(mount_);
  }
  ~Cgroup() override { fs::remove_all(mount_); }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((mount_ / path).parent_path());
    std::ofstream(mount_ / path) << text;
  }

  fs::path mount_;
};

TEST_F(Cgroup, SetsNoLimitWhereThereIsNone) {
  const auto absent = cgroup_limits(mount_ / "absent", "0::/\n");
  EXPECT_EQ(absent.cpus, std::nullopt);
  EXPECT_EQ(absent.memory_free, std::nullopt);

  write("cpu.max", "max 100000\n");
  write("memory.max", "max\n");
  write("memory.current", "1000\n");
  const auto unlimited = cgroup_limits(mount_, "0::/\n");
  EXPECT_EQ(unlimited.cpus, std::nullopt);
  EXPECT_EQ(unlimited.memory_free, std::nullopt);
}

TEST_F(Cgroup, ReadsVersion2) {
  write("cpu.max", "150000 100000\n");
  write("memory.max", "1000000\n");
  write("memory.current", "700000\n");
  write("memory.stat", "anon 300000\nfile 500000\nactive_file 150000\ninactive_file 250000\n");
  const auto limits = cgroup_limits(mount_, "0::/\n");
  EXPECT_EQ(limits.cpus, 1.5);
  EXPECT_EQ(limits.memory_free, 700000U);  // 1000000 - (700000 - 150000 - 250000)
}

TEST_F(Cgroup, TakesTheTightestOfTheAncestors) {
  write("a/cpu.max", "200000 100000\n");
  write("a/b/cpu.max", "800000 100000\n");
  write("a/b/c/cpu.max", "max 100000\n");
  write("a/memory.max", "500\n");
  write("a/memory.current", "100\n");
  write("a/b/memory.max", "9000\n");
  write("a/b/memory.current", "100\n");
  const auto limits = cgroup_limits(mount_, "0::/a/b/c\n");
  EXPECT_EQ(limits.cpus, 2.0);
  EXPECT_EQ(limits.memory_free, 400U);
}

TEST_F(Cgroup, ReadsVersion1) {
  write("cpu/docker/x/cpu.cfs_quota_us", "50000\n");
  write("cpu/docker/x/cpu.cfs_period_us", "100000\n");
  write("memory/docker/x/memory.limit_in_bytes", "2000\n");
  write("memory/docker/x/memory.usage_in_bytes", "1500\n");
  write("memory/docker/x/memory.stat", "total_active_file 100\ntotal_inactive_file 400\n");
  const auto limits = cgroup_limits(
      mount_, "12:pids:/other\n4:cpu,cpuacct:/docker/x\n3:memory:/docker/x\n1:name=systemd:/x\n");
  EXPECT_EQ(limits.cpus, 0.5);
  EXPECT_EQ(limits.memory_free, 1000U);
}

TEST_F(Cgroup, FindsNoLimitInVersion1sUnlimited) {
  write("cpu/cpu.cfs_quota_us", "-1\n");
  write("cpu/cpu.cfs_period_us", "100000\n");
  write("memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("memory/memory.usage_in_bytes", "1500\n");
  const auto limits = cgroup_limits(mount_, "4:cpu:/\n3:memory:/\n");
  EXPECT_EQ(limits.cpus, std::nullopt);
  EXPECT_EQ(limits.memory_free, std::nullopt);
}

// Inside a container the group's path may be the host's, which isn't mounted here.
TEST_F(Cgroup, FallsBackToTheMountPoint) {
  write("cpu.max", "300000 100000\n");
  EXPECT_EQ(cgroup_limits(mount_, "0::/host/only/path\n").cpus, 3.0);
  EXPECT_EQ(cgroup_limits(mount_, "0::/../sibling\n").cpus, 3.0);
}

TEST_F(Cgroup, LeavesNoMemoryWhereUsageExceedsTheLimit) {
  write("memory.max", "1000\n");
  write("memory.current", "1200\n");
  EXPECT_EQ(cgroup_limits(mount_, "0::/\n").memory_free, 0U);
}

TEST_F(Cgroup, IgnoresWhatItCannotRead) {
  write("cpu.max", "fast slow\n");
  write("memory.max", "lots\n");
  write("memory.current", "\n");
  for (const std::string_view text : {"", "\n", "0", "0:", "0::", "::::\n", "0::/\n"}) {
    const auto limits = cgroup_limits(mount_, text);
    EXPECT_EQ(limits.cpus, std::nullopt) << text;
    EXPECT_EQ(limits.memory_free, std::nullopt) << text;
  }
  write("cpu.max", "100000 0\n");
  EXPECT_EQ(cgroup_limits(mount_, "0::/\n").cpus, std::nullopt);
}

}  // namespace
}  // namespace edgerunner
