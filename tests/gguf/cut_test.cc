// Files that end too early.
#include <gtest/gtest.h>

#include <fstream>

#include "gguf/file.h"
#include "support/expect_error.h"
#include "support/file_builder.h"
#include "support/shared_data.h"
#include "support/temporary_folder.h"
#include "support/touch_file.h"

namespace edgerunner {
namespace {

using gguf::File;
using gguf::ValueType;
using test::expect_error;
using test::FileBuilder;

TEST(CutFile, IsRefusedAtEveryLength) {
  FileBuilder builder;
  builder.header(2, 4).text_key("general.architecture", "llama").u32_key("n", 7);
  builder.array("words", ValueType::string, 2).string("one").string("two");
  builder.array("numbers", ValueType::f64, 3).number(1.0).number(2.0).number(3.0);
  builder.tensor("a", {4, 2}, 0, 0).tensor("b", {32}, 8, 32).pad().data(32 + 34);
  ASSERT_NO_THROW(File::view(builder.bytes()));
  for (std::size_t length = 0; length < builder.size(); ++length) {
    // A copy of that very size, so that a sanitizer sees the first byte past the end
    const std::vector<std::byte> cut(builder.bytes().begin(),
                                     builder.bytes().begin() + static_cast<std::ptrdiff_t>(length));
    expect_error(ErrorCode::invalid_file, "cut.gguf: ", [&] { File::view(cut, "cut.gguf"); });
  }
}

TEST(CutFile, OnDiskIsRefusedAroundEveryBorderOfAModel) {
  EDGERUNNER_REQUIRE_SHARED_DATA();
  const std::filesystem::path model = test::shared_dir() / "fixtures" / "models" / "qwen3.gguf";
  const File file = File::open(model);
  std::ifstream stream(model, std::ios::binary);
  const std::string contents((std::istreambuf_iterator<char>(stream)), {});
  // The views of the mapped file say where its parts begin.
  const auto* base = reinterpret_cast<const char*>(file.metadata()[0].key.data()) - 24 - 8;
  std::vector<std::size_t> borders = {4, 8, 16, 24};
  for (const gguf::Value& value : file.metadata()) {
    borders.push_back(static_cast<std::size_t>(value.key.data() - base));
    borders.push_back(borders.back() + value.key.size());
  }
  std::size_t last = 0;
  for (const gguf::Tensor& tensor : file.tensors()) {
    borders.push_back(static_cast<std::size_t>(tensor.name.data() - base));
    borders.push_back(borders.back() + tensor.name.size());
    const auto data =
        static_cast<std::size_t>(reinterpret_cast<const char*>(tensor.data.data()) - base);
    borders.push_back(data);
    last = std::max(last, data + tensor.data.size());
    borders.push_back(data + tensor.data.size());
  }
  const test::TemporaryFolder folder;
  const std::filesystem::path cut = folder / "cut.gguf";
  for (const std::size_t border : borders) {
    for (const std::size_t length : {border - 1, border, border + 1}) {
      std::ofstream(cut, std::ios::binary) << contents.substr(0, length);
      if (length >= last) {
        EXPECT_NO_THROW(test::touch(File::open(cut)));  // only padding is missing
      } else {
        expect_error(ErrorCode::invalid_file, cut.string(), [&] { File::open(cut); });
      }
    }
  }
}

}  // namespace
}  // namespace edgerunner
