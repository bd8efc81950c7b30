#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>

#include "gguf/file.h"
#include "outcomes.h"
#include "seed_models.h"
#include "support/mutate.h"
#include "support/touch_decoder.h"
#include "support/touch_forward.h"
#include "support/touch_tokenizer.h"

namespace edgerunner {
namespace {

using gguf::File;
using test::Outcomes;

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
  Outcomes files;
  Outcomes decoders;
  Outcomes tokenizers;
  for (const std::filesystem::path& path : paths) {
    const std::vector<std::byte> model = read_bytes(path);
    ASSERT_NO_THROW(test::touch_decoder(File::view(model))) << path;
    ASSERT_NO_THROW(test::touch_tokenizer(File::view(model))) << path;
    const auto header =
        static_cast<std::size_t>(File::view(model).tensors().front().data.data() - model.data());
    for (std::size_t i = 0; i < 20000 / paths.size(); ++i) {
      const std::vector<std::byte> bytes = test::mutate(model, header, random);
      const std::string what = path.filename().string() + ", mutation " + std::to_string(i);
      files.count(what, [&] {
        const File file = File::view(bytes);
        decoders.count(what, [&] {
          test::touch_decoder(file);
          test::touch_forward(file);
        });
        tokenizers.count(what, [&] { test::touch_tokenizer(file); });
      });
    }
  }
  std::printf("mutated models: %d opened, %d refused; decoders: %d and %d; tokenizers: %d and %d\n",
              files.taken, files.refused, decoders.taken, decoders.refused, tokenizers.taken,
              tokenizers.refused);
  EXPECT_GT(decoders.taken, 500);
  EXPECT_GT(decoders.refused, 200);
  EXPECT_GT(tokenizers.taken, 500);
  EXPECT_GT(tokenizers.refused, 100);
}

}  // namespace
}  // namespace edgerunner
