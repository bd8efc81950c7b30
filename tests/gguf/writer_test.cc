#include "gguf/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "support/expect_error.h"
#include "support/shared_data.h"
#include "support/temporary_folder.h"

namespace edgerunner {
namespace {

using gguf::File;
using gguf::Writer;
using test::expect_error;
using test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::byte> counting_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + 3);
  return bytes;
}

std::vector<std::string> files_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

void expect_same_contents(const File& a, const File& b) {
  ASSERT_EQ(a.metadata().size(), b.metadata().size());
  for (std::size_t i = 0; i < a.metadata().size(); ++i) {
    const gguf::Value& x = a.metadata()[i];
    const gguf::Value& y = b.metadata()[i];
    EXPECT_EQ(x.key, y.key);
    EXPECT_EQ(x.type, y.type) << x.key;
    EXPECT_EQ(x.element_type, y.element_type) << x.key;
    EXPECT_EQ(x.count, y.count) << x.key;
    EXPECT_EQ(x.text, y.text) << x.key;
    EXPECT_EQ(x.texts, y.texts) << x.key;
    EXPECT_TRUE(std::ranges::equal(x.bytes, y.bytes)) << x.key;
  }
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  for (std::size_t i = 0; i < a.tensors().size(); ++i) {
    const gguf::Tensor& x = a.tensors()[i];
    const gguf::Tensor& y = b.tensors()[i];
    EXPECT_EQ(x.name, y.name);
    EXPECT_EQ(x.type, y.type) << x.name;
    EXPECT_EQ(x.rank, y.rank) << x.name;
    EXPECT_EQ(x.shape, y.shape) << x.name;
    EXPECT_TRUE(std::ranges::equal(x.data, y.data)) << x.name;
  }
}

// Writes all of `file` to `path`, each tensor in pieces of at most `piece` bytes.
void rewrite(const File& file, const std::filesystem::path& path, gguf::WriterOptions options = {},
             std::size_t piece = 1000) {
  Writer writer(path, options);
  writer.copy_metadata(file);
  for (const gguf::Tensor& tensor : file.tensors()) {
    writer.declare(tensor.name, tensor.type, std::span(tensor.shape).first(tensor.rank));
  }
  for (const gguf::Tensor& tensor : file.tensors()) {
    for (std::size_t at = 0; at < tensor.data.size(); at += piece) {
      writer.write(tensor.name, tensor.data.subspan(at, std::min(piece, tensor.data.size() - at)));
    }
  }
  writer.finish();
}

// A file with tensors of 64, 34 and 96 bytes.
void write_three(Writer& writer) {
  writer.set("general.architecture", std::string("llama"));
  writer.declare("a", ElementType::f32, std::vector<std::uint64_t>{4, 4});
  writer.declare("b", ElementType::q8_0, std::vector<std::uint64_t>{32});
  writer.declare("c", ElementType::f16, std::vector<std::uint64_t>{4, 3, 2, 2});
  writer.write("a", counting_bytes(64));
  writer.write("b", counting_bytes(34));
  writer.write("c", counting_bytes(96));
}

TEST(Writer, WritesEveryTypeOfMetadata) {
  const TemporaryFolder folder;
  Writer writer(folder / "all.gguf");
  writer.set("u8", std::uint8_t{200});
  writer.set("i8", std::int8_t{-100});
  writer.set("u16", std::uint16_t{60000});
  writer.set("i16", std::int16_t{-30000});
  writer.set("u32", std::uint32_t{4000000000});
  writer.set("i32", std::int32_t{-2000000000});
  writer.set("u64", std::uint64_t{1} << 63);
  writer.set("i64", std::int64_t{-1} << 62);
  writer.set("f32", 0.1F);
  writer.set("f64", 0.1);
  writer.set("bool", true);
  writer.set("string", std::string("h\xC3\xA9llo"));
  writer.set("u8s", std::vector<std::uint8_t>{1, 2});
  writer.set("i8s", std::vector<std::int8_t>{-1, 2});
  writer.set("u16s", std::vector<std::uint16_t>{1, 2});
  writer.set("i16s", std::vector<std::int16_t>{-1, 2});
  writer.set("u32s", std::vector<std::uint32_t>{1, 2});
  writer.set("i32s", std::vector<std::int32_t>{-1, 2});
  writer.set("u64s", std::vector<std::uint64_t>{1, 2});
  writer.set("i64s", std::vector<std::int64_t>{-1, 2});
  writer.set("f32s", std::vector<float>{0.5F, -2});
  writer.set("f64s", std::vector<double>{0.5, -2});
  writer.set("bools", std::vector<bool>{true, false});
  writer.set("strings", std::vector<std::string>{"x", "", "yz"});
  writer.set("none", std::vector<std::uint32_t>{});
  writer.finish();

  const File file = File::open(folder / "all.gguf");
  EXPECT_EQ(file.metadata().size(), 25U);
  EXPECT_EQ(file.get_uint("u8"), 200U);
  EXPECT_EQ(file.get_int("i8"), -100);
  EXPECT_EQ(file.get_uint("u16"), 60000U);
  EXPECT_EQ(file.get_int("i16"), -30000);
  EXPECT_EQ(file.get_uint("u32"), 4000000000U);
  EXPECT_EQ(file.get_int("i32"), -2000000000);
  EXPECT_EQ(file.get_uint("u64"), std::uint64_t{1} << 63);
  EXPECT_EQ(file.get_int("i64"), std::int64_t{-1} << 62);
  EXPECT_EQ(file.get_float("f32"), double{0.1F});
  EXPECT_EQ(file.get_float("f64"), 0.1);
  EXPECT_EQ(file.get_bool("bool"), true);
  EXPECT_EQ(file.get_string("string"), "h\xC3\xA9llo");
  for (const char* key : {"u8s", "u16s", "u32s", "u64s"}) {
    EXPECT_THAT(*file.get_ints(key), ElementsAre(1, 2)) << key;
  }
  for (const char* key : {"i8s", "i16s", "i32s", "i64s"}) {
    EXPECT_THAT(*file.get_ints(key), ElementsAre(-1, 2)) << key;
  }
  EXPECT_THAT(*file.get_floats("f32s"), ElementsAre(0.5F, -2.0F));
  EXPECT_THAT(*file.get_floats("f64s"), ElementsAre(0.5F, -2.0F));
  EXPECT_THAT(*file.get_ints("bools"), ElementsAre(1, 0));
  EXPECT_THAT(*file.get_strings("strings"), ElementsAre("x", "", "yz"));
  EXPECT_THAT(*file.get_ints("none"), IsEmpty());
}

TEST(Writer, ReplacesAKeyInItsPlace) {
  const TemporaryFolder folder;
  Writer writer(folder / "f.gguf");
  writer.set("first", std::uint32_t{1});
  writer.set("second", std::uint32_t{2});
  writer.set("first", std::string("one"));
  writer.finish();
  const File file = File::open(folder / "f.gguf");
  ASSERT_EQ(file.metadata().size(), 2U);
  EXPECT_EQ(file.metadata()[0].key, "first");
  EXPECT_EQ(file.get_string("first"), "one");
}

TEST(Writer, AlignsTensorsAsTheKeySays) {
  for (const std::uint32_t alignment : {8U, 32U, 4096U, 16384U}) {
    const TemporaryFolder folder;
    Writer writer(folder / "f.gguf");
    writer.set("general.alignment", alignment);
    write_three(writer);
    writer.finish();
    const File file = File::open(folder / "f.gguf");
    EXPECT_EQ(file.alignment(), alignment);
    ASSERT_EQ(file.tensors().size(), 3U);
    EXPECT_TRUE(std::ranges::equal(file.find_tensor("c")->data, counting_bytes(96)));
    for (const gguf::Tensor& tensor : file.tensors()) {
      const auto address = reinterpret_cast<std::uintptr_t>(tensor.data.data());
      EXPECT_EQ(address % std::min(alignment, 4096U), 0U) << tensor.name;  // the mapping's own
    }
  }
}

TEST(Writer, SplitsByBytesAndAnyShardOpensAll) {
  const TemporaryFolder folder;
  Writer writer(folder / "m.gguf", {.max_shard_bytes = 100});
  writer.set("general.alignment", std::uint32_t{64});
  write_three(writer);
  writer.finish();
  // 64 bytes; 34 more would fit 100, but 34 begin at 64 and end at 98; 96 need a shard of their own
  EXPECT_THAT(files_in(folder.path()),
              ElementsAre("m-00001-of-00002.gguf", "m-00002-of-00002.gguf"));
  for (const char* shard : {"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"}) {
    const File file = File::open(folder / shard);
    EXPECT_EQ(file.shard_count(), 2U);
    EXPECT_EQ(file.alignment(), 64U);
    EXPECT_EQ(file.name(), (folder / "m-00001-of-00002.gguf").string());
    EXPECT_EQ(file.get_string("general.architecture"), "llama");
    ASSERT_EQ(file.tensors().size(), 3U);
    EXPECT_EQ(file.tensors()[2].name, "c");
    EXPECT_TRUE(std::ranges::equal(file.tensors()[1].data, counting_bytes(34)));
    EXPECT_TRUE(std::ranges::equal(file.tensors()[2].data, counting_bytes(96)));
  }
}

TEST(Writer, RewritesFixturesWithIdenticalContents) {
  EDGERUNNER_REQUIRE_SHARED_DATA();
  const TemporaryFolder folder;
  std::size_t rewritten = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(test::shared_dir() / "fixtures" / "models")) {
    if (entry.path().extension() != ".gguf") continue;
    const File original = File::open(entry.path());
    rewrite(original, folder / "copy.gguf");
    expect_same_contents(original, File::open(folder / "copy.gguf"));
    ++rewritten;
  }
  EXPECT_GE(rewritten, 30U);
}

TEST(Writer, SplitsAFixtureAndJoinsItAgain) {
  EDGERUNNER_REQUIRE_SHARED_DATA();
  const TemporaryFolder folder;
  const File original = File::open(test::shared_dir() / "fixtures" / "models" / "qwen3.gguf");
  rewrite(original, folder / "split.gguf", {.max_shard_bytes = original.bytes() / 4});
  std::string last;
  for (const std::string& name : files_in(folder.path())) last = std::max(last, name);
  const File split = File::open(folder / last);
  EXPECT_GT(split.shard_count(), 3U);
  rewrite(split, folder / "joined.gguf");
  expect_same_contents(original, File::open(folder / "joined.gguf"));
}

TEST(Writer, LeavesNothingBehindWithoutFinish) {
  const TemporaryFolder folder;
  {
    Writer writer(folder / "f.gguf", {.max_shard_bytes = 64});
    write_three(writer);
    EXPECT_FALSE(files_in(folder.path()).empty());
  }
  EXPECT_THAT(files_in(folder.path()), IsEmpty());
}

TEST(Writer, KeepsTheOldFileUntilFinish) {
  const TemporaryFolder folder;
  std::ofstream(folder / "f.gguf") << "old";
  Writer writer(folder / "f.gguf");
  write_three(writer);
  EXPECT_EQ(std::filesystem::file_size(folder / "f.gguf"), 3U);
  writer.finish();
  EXPECT_EQ(File::open(folder / "f.gguf").tensors().size(), 3U);
  EXPECT_THAT(files_in(folder.path()), ElementsAre("f.gguf"));
}

TEST(Writer, NamesThePathThatCannotBeWritten) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "absent" / "f.gguf";
  expect_error(ErrorCode::io, path.string(), [&] {
    Writer writer(path);
    write_three(writer);
  });
  expect_error(ErrorCode::io, "is a directory", [&] {
    Writer writer(folder.path());
    write_three(writer);
  });
}

TEST(Writer, NamesThePathWhenTheDiskIsFull) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const TemporaryFolder folder;
  std::filesystem::create_symlink("/dev/full", folder / "f.gguf.part");
  expect_error(ErrorCode::io, "f.gguf", [&] {
    Writer writer(folder / "f.gguf");
    write_three(writer);
    writer.finish();
  });
}

TEST(Writer, RefusesWhatMakesNoValidFile) {
  const TemporaryFolder folder;
  const auto refuses = [&](const std::string& part, auto action) {
    Writer writer(folder / "f.gguf");
    expect_error(ErrorCode::invalid_argument, part, [&] { action(writer); });
  };
  const auto declare = [](Writer& writer, const std::string& name, ElementType type,
                          const std::vector<std::uint64_t>& shape) {
    writer.declare(name, type, shape);
  };
  refuses("split.count", [](Writer& w) { w.set("split.count", std::uint16_t{2}); });
  refuses("name of a key", [](Writer& w) { w.set("", std::uint16_t{2}); });
  refuses("name of a key", [](Writer& w) { w.set(std::string(65536, 'k'), true); });
  refuses("alignment", [](Writer& w) { w.set("general.alignment", std::uint32_t{48}); });
  refuses("alignment", [](Writer& w) { w.set("general.alignment", std::uint64_t{32}); });
  refuses("name of a tensor", [&](Writer& w) { declare(w, "", ElementType::f32, {1}); });
  refuses("name of a tensor",
          [&](Writer& w) { declare(w, std::string(65, 't'), ElementType::f32, {1}); });
  refuses("0 dimensions", [&](Writer& w) { declare(w, "t", ElementType::f32, {}); });
  refuses("5 dimensions", [&](Writer& w) { declare(w, "t", ElementType::f32, {1, 1, 1, 1, 1}); });
  refuses("[4, 0]", [&](Writer& w) { declare(w, "t", ElementType::f32, {4, 0}); });
  refuses("no file can hold", [&](Writer& w) {
    declare(w, "t", ElementType::f32, {1ULL << 40, 1ULL << 40});
  });
  refuses("multiple of 32", [&](Writer& w) { declare(w, "t", ElementType::q8_0, {33}); });
  refuses("declared twice", [&](Writer& w) {
    declare(w, "t", ElementType::f32, {1});
    declare(w, "t", ElementType::f32, {1});
  });
  refuses("'b' comes where 'a'", [&](Writer& w) {
    declare(w, "a", ElementType::f32, {1});
    declare(w, "b", ElementType::f32, {1});
    w.write("b", counting_bytes(4));
  });
  refuses("more than its 4 bytes", [&](Writer& w) {
    declare(w, "a", ElementType::f32, {1});
    w.write("a", counting_bytes(5));
  });
  refuses("after the last", [&](Writer& w) { w.write("a", counting_bytes(5)); });
  refuses("after the first tensor's data", [&](Writer& w) {
    declare(w, "a", ElementType::f32, {1});
    w.write("a", counting_bytes(4));
    w.set("key", true);
  });
  refuses("3 of 4 bytes", [&](Writer& w) {
    declare(w, "a", ElementType::f32, {1});
    w.write("a", counting_bytes(3));
    w.finish();
  });
  expect_error(ErrorCode::invalid_argument, "version 4",
               [&] { Writer(folder / "f.gguf", {.version = 4}); });
  EXPECT_THAT(files_in(folder.path()), IsEmpty());
}

}  // namespace
}  // namespace edgerunner
