#include "base/memory.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace edgerunner {
namespace {

TEST(KilobyteLine, GivesBytesOfTheNamedLineAlone) {
  constexpr std::string_view kText =
      "MemTotal:       8012345 kB\nMemAvailable:       42 kB\nHugePages_Total:  3\nLast: 7 kB";
  EXPECT_EQ(kilobyte_line(kText, "MemAvailable"), 42U * 1024);
  EXPECT_EQ(kilobyte_line(kText, "MemTotal"), 8012345ULL * 1024);
  EXPECT_EQ(kilobyte_line(kText, "Last"), 7U * 1024);
  EXPECT_EQ(kilobyte_line(kText, "Mem"), std::nullopt);
  EXPECT_EQ(kilobyte_line(kText, "HugePages_Total"), std::nullopt);
  EXPECT_EQ(kilobyte_line("", "MemTotal"), std::nullopt);
  EXPECT_EQ(kilobyte_line("MemTotal:", "MemTotal"), std::nullopt);
  EXPECT_EQ(kilobyte_line("MemTotal", "MemTotal"), std::nullopt);
}

#if defined(__linux__)
TEST(AvailableMemory, IsSomeOfWhatTheMachineHas) {
  const auto bytes = available_memory();
  ASSERT_TRUE(bytes.has_value());
  EXPECT_GT(*bytes, std::uint64_t{1} << 20);
  EXPECT_LT(*bytes, std::uint64_t{1} << 50);
}

TEST(PeakResidentBytes, RisesWithWhatIsTouched) {
  const auto before = peak_resident_bytes();
  ASSERT_TRUE(before.has_value());
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  const std::vector<std::byte> touched(kBytes, std::byte{1});
  const auto after = peak_resident_bytes();
  ASSERT_TRUE(after.has_value());
  EXPECT_GE(*after, kBytes);
  EXPECT_GE(*after, *before);
  EXPECT_EQ(touched.back(), std::byte{1});
}
#endif

}  // namespace
}  // namespace edgerunner
