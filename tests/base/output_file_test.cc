#include "base/output_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace edgerunner {
namespace {

class OutputFiles : public ::testing::Test {
 protected:
  static void write(OutputFile& file, std::string_view text) {
    file.write(std::as_bytes(std::span(text)));
  }
  static std::string read(const std::filesystem::path& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  test::TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "file";
};

TEST_F(OutputFiles, AppearWhenTheyAreComplete) {
  std::ofstream(path_) << "before";
  OutputFile file(path_);
  write(file, "after");
  file.close();
  EXPECT_EQ(read(path_), "before");
  EXPECT_EQ(read(file.part_path()), "after");
  file.commit();
  EXPECT_EQ(read(path_), "after");
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "file.part"));
}

TEST_F(OutputFiles, LeaveNothingWhereTheyAreGivenUp) {
  {
    OutputFile file(path_);
    write(file, "half");
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(OutputFiles, HaveOneWriterAtATime) {
  OutputFile first(path_);
  write(first, "first");
  test::expect_error(ErrorCode::io, "is being written", [&] { OutputFile{path_}; });
  first.commit();
  OutputFile second(path_);
  write(second, "second");
  second.commit();
  EXPECT_EQ(read(path_), "second");
}

TEST_F(OutputFiles, WriteOverWhatAKilledRunLeft) {
  std::ofstream(folder_.path() / "file.part") << "much more than is written now";
  OutputFile file(path_);
  write(file, "new");
  file.commit();
  EXPECT_EQ(read(path_), "new");
}

TEST_F(OutputFiles, StandWhereALinkEnds) {
  const std::filesystem::path link = folder_.path() / "link";
  std::ofstream(path_) << "before";
  std::filesystem::create_symlink("file", link);
  OutputFile file(link);
  write(file, "after");
  test::expect_error(ErrorCode::io, "is being written", [&] { OutputFile{path_}; });
  file.commit();
  EXPECT_EQ(read(path_), "after");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 2);
}

TEST_F(OutputFiles, TakeTheNameOfNothingButAFile) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  test::expect_error(ErrorCode::io, "not a regular file", [&] { OutputFile{path_}; });
  EXPECT_TRUE(std::filesystem::is_fifo(path_));
  test::expect_error(ErrorCode::io, "is a directory", [&] { OutputFile{folder_.path()}; });
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
}

}  // namespace
}  // namespace edgerunner
