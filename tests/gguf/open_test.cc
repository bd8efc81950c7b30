// What File::open meets in the file system: wrong kinds of files, and split models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "gguf/file.h"
#include "support/expect_error.h"
#include "support/file_builder.h"
#include "support/temporary_folder.h"
#include "support/touch_file.h"

namespace edgerunner {
namespace {

using gguf::File;
using gguf::ValueType;
using test::expect_error;
using test::FileBuilder;
using test::TemporaryFolder;

void save(const std::filesystem::path& path, const FileBuilder& builder) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(builder.bytes().data()),
             static_cast<std::streamsize>(builder.size()));
}

// A shard with one tensor of 32 bytes.
FileBuilder shard(std::uint16_t number, std::uint16_t count, std::int32_t tensors,
                  const std::string& tensor) {
  return FileBuilder()
      .header(1, 3)
      .key("split.no", ValueType::u16)
      .number(number)
      .key("split.count", ValueType::u16)
      .number(count)
      .key("split.tensors.count", ValueType::i32)
      .number(tensors)
      .tensor(tensor, {8}, 0, 0)
      .pad()
      .data(32);
}

TEST(FileOpen, SaysWhatCannotBeOpened) {
  const TemporaryFolder folder;
  expect_error(ErrorCode::io, (folder / "absent.gguf").string(),
               [&] { File::open(folder / "absent.gguf"); });
  expect_error(ErrorCode::io, "is a directory", [&] { File::open(folder.path()); });
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  expect_error(ErrorCode::io, "not a regular file", [&] { File::open(folder / "pipe"); });
}

TEST(FileOpen, RefusesEmptyAndTextFiles) {
  const TemporaryFolder folder;
  std::ofstream(folder / "empty.gguf").close();
  expect_error(ErrorCode::invalid_file, "empty.gguf: the file is empty",
               [&] { File::open(folder / "empty.gguf"); });
  std::ofstream(folder / "text.gguf") << "Not a model.\n";
  expect_error(ErrorCode::invalid_file, "not a GGUF file",
               [&] { File::open(folder / "text.gguf"); });
}

TEST(FileOpen, AnyShardOpensTheWholeModel) {
  const TemporaryFolder folder;
  save(folder / "m-00001-of-00002.gguf", shard(0, 2, 2, "a"));
  save(folder / "m-00002-of-00002.gguf", shard(1, 2, 2, "b"));
  for (const char* name : {"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"}) {
    const File file = File::open(folder / name);
    EXPECT_EQ(file.shard_count(), 2U);
    ASSERT_EQ(file.tensors().size(), 2U);
    EXPECT_EQ(file.tensors()[0].name, "a");
    EXPECT_EQ(file.tensors()[1].name, "b");
    EXPECT_NO_THROW(test::touch(file));
  }
}

TEST(FileOpen, NamesTheMissingShard) {
  const TemporaryFolder folder;
  save(folder / "m-00001-of-00003.gguf", shard(0, 3, 3, "a"));
  save(folder / "m-00003-of-00003.gguf", shard(2, 3, 3, "c"));
  expect_error(ErrorCode::io, "m-00002-of-00003.gguf' is missing",
               [&] { File::open(folder / "m-00003-of-00003.gguf"); });
}

TEST(FileOpen, NamesTheShardThatIsDamaged) {
  const TemporaryFolder folder;
  save(folder / "m-00001-of-00002.gguf", shard(0, 2, 2, "a"));
  std::ofstream(folder / "m-00002-of-00002.gguf") << "GGUF";
  expect_error(ErrorCode::invalid_file, "m-00002-of-00002.gguf",
               [&] { File::open(folder / "m-00001-of-00002.gguf"); });
}

TEST(FileOpen, RefusesShardsThatDoNotBelongTogether) {
  const TemporaryFolder folder;
  const std::filesystem::path first = folder / "m-00001-of-00002.gguf";
  const std::filesystem::path second = folder / "m-00002-of-00002.gguf";
  const auto refuses = [&](const std::string& part) {
    expect_error(ErrorCode::invalid_file, part, [&] { File::open(first); });
  };
  save(first, shard(0, 2, 2, "a"));
  save(second, shard(0, 2, 2, "b"));
  refuses("part 2 of 2 but its metadata says part 1 of 2");
  save(second, shard(1, 3, 2, "b"));
  refuses("metadata says part 2 of 3");
  save(second, FileBuilder().header(0, 0));
  refuses("metadata says part 1 of 1");
  save(second, shard(1, 2, 2, "a"));
  refuses("'a' occurs twice");
  save(first, shard(0, 2, 5, "a"));
  save(second, shard(1, 2, 5, "b"));
  refuses("split.tensors.count is 5");
}

TEST(FileOpen, RefusesShardsWhoseNamesHideTheOthers) {
  const TemporaryFolder folder;
  const auto refuses = [&](const std::string& part, const FileBuilder& builder) {
    save(folder / "m.gguf", builder);
    expect_error(ErrorCode::invalid_file, part, [&] { File::open(folder / "m.gguf"); });
  };
  refuses("-00001-of-00002.gguf", shard(0, 2, 2, "a"));
  refuses("split.no is 2 and split.count 2", shard(2, 2, 2, "a"));
  refuses("split.no is absent",
          FileBuilder().header(0, 1).key("split.count", ValueType::u16).number(std::uint16_t{2}));
  refuses("split.count", FileBuilder().header(0, 1).text_key("split.count", "2"));
  expect_error(ErrorCode::unsupported, "open it by its path",
               [&] { File::view(shard(0, 2, 2, "a").bytes()); });
  save(folder / "m.gguf", shard(0, 1, 1, "a"));
  EXPECT_EQ(File::open(folder / "m.gguf").shard_count(), 1U);
}

}  // namespace
}  // namespace edgerunner
