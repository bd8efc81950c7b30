#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>

#include "edgerunner/error.h"
#include "gguf/file.h"
#include "seed_models.h"
#include "support/mutate.h"
#include "support/touch_decoder.h"

namespace edgerunner {
namespace {

using gguf::File;

std::vector<std::byte> read_bytes(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

TEST(ModelMutation, ReadsOrRefusesTwentyThousandMutatedModels) {
  const std::vector<std::filesystem::path> paths = test::seed_models();
  ASSERT_FALSE(paths.empty());
  test::MutationRandom random(20260102);
  int read = 0;
  int refused = 0;
  for (const std::filesystem::path& path : paths) {
    const std::vector<std::byte> model = read_bytes(path);
    ASSERT_NO_THROW(test::touch_decoder(File::view(model))) << path;
    const std::size_t header =
        static_cast<std::size_t>(File::view(model).tensors().front().data.data() - model.data());
    for (std::size_t i = 0; i < 20000 / paths.size(); ++i) {
      const std::vector<std::byte> bytes = test::mutate(model, header, random);
      try {
        test::touch_decoder(File::view(bytes));
        ++read;
      } catch (const Error& error) {
        ASSERT_TRUE(error.code() == ErrorCode::invalid_file ||
                    error.code() == ErrorCode::unsupported)
            << path << ", file " << i << ": " << error.what();
        ++refused;
      }
    }
  }
  std::printf("mutated models: %d decoders read, %d refused\n", read, refused);
  EXPECT_GT(read, 500);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace edgerunner
