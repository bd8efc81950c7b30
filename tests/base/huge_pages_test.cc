#include "base/huge_pages.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/mapped_file.h"
#include "support/temporary_folder.h"

namespace edgerunner {
namespace {

// Large enough to be read again, and no multiple of a huge page.
constexpr std::size_t kSize = (std::size_t{40} << 20) + 12345;

std::vector<char> contents() {
  std::vector<char> bytes(kSize);
  for (std::size_t i = 0; i < kSize; ++i) bytes[i] = static_cast<char>(i * 2654435761U >> 24);
  return bytes;
}

TEST(HugePages, LeaveTheContentsOfAFileAsTheyAre) {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "weights";
  const std::vector<char> bytes = contents();
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(kSize));
  for (int i = 0; i < 2; ++i) {  // as it was written, and as the first left it
    const MappedFile file(path);
    file.will_read_often();
    ASSERT_EQ(file.bytes().size(), kSize);
    EXPECT_EQ(std::memcmp(file.bytes().data(), bytes.data(), kSize), 0);
  }
}

TEST(HugePages, AreNoConcernOfSmallFiles) {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "weights";
  std::ofstream(path, std::ios::binary) << "few bytes";
  const MappedFile file(path);
  EXPECT_FALSE(read_into_huge_pages(-1, file.bytes()));
  EXPECT_EQ(std::memcmp(file.bytes().data(), "few bytes", 9), 0);
  EXPECT_FALSE(read_into_huge_pages(-1, {}));
}

}  // namespace
}  // namespace edgerunner
