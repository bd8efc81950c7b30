// Every metadata key of a model, absent, and with values of every type that it can't have.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>

#include "gguf/file.h"
#include "outcomes.h"
#include "rewrite.h"
#include "seed_models.h"
#include "support/touch_decoder.h"
#include "support/touch_forward.h"
#include "support/touch_tokenizer.h"

namespace edgerunner {
namespace {

using gguf::File;
using gguf::MetadataValue;
using test::Outcomes;

std::vector<MetadataValue> awkward_values() {
  const std::string text = "text";
  return {std::uint8_t{0},
          std::uint8_t{255},
          std::int8_t{-128},
          std::uint16_t{0},
          std::uint16_t{65535},
          std::int16_t{-1},
          std::uint32_t{0},
          std::uint32_t{1},
          std::uint32_t{7},
          std::uint32_t{1} << 16,
          std::uint32_t{1} << 31,
          ~std::uint32_t{0},
          std::int32_t{-1},
          std::numeric_limits<std::int32_t>::min(),
          std::uint64_t{0},
          (std::uint64_t{1} << 42) + 1,
          std::uint64_t{1} << 63,
          ~std::uint64_t{0},
          std::int64_t{-1},
          std::numeric_limits<std::int64_t>::min(),
          0.0F,
          -1.0F,
          1e38F,
          std::nanf(""),
          std::numeric_limits<float>::infinity(),
          std::numeric_limits<double>::denorm_min(),
          1e300,
          false,
          true,
          std::string(),
          text,
          std::string("\xFF\0\n", 3),
          std::string(10000, 'x'),
          std::vector<std::uint8_t>{},
          std::vector<std::uint8_t>(12, 3),
          std::vector<std::int8_t>{-1},
          std::vector<std::uint16_t>{1},
          std::vector<std::int16_t>{-1},
          std::vector<std::uint32_t>{0},
          std::vector<std::uint32_t>(12, 1),
          std::vector<std::int32_t>{},
          std::vector<std::int32_t>(12, -1),
          std::vector<std::int32_t>(13, 1),
          std::vector<float>{},
          std::vector<float>(12, std::nanf("")),
          std::vector<bool>{true},
          std::vector<std::string>{},
          std::vector<std::string>{""},
          std::vector<std::string>(12, "a"),
          std::vector<std::string>{"\xFF", " ", "a  b", "ab"},
          std::vector<std::uint64_t>(1, ~std::uint64_t{0}),
          std::vector<std::int64_t>(1, -1),
          std::vector<double>(12, 1e300)};
}

TEST(WrongValue, OfAnyKeyIsTakenOrRefused) {
  const std::vector<MetadataValue> values = awkward_values();
  Outcomes decoders;
  Outcomes tokenizers;
  for (const std::filesystem::path& path : test::seed_models()) {
    const File model = File::open(path);
    for (const gguf::Value& entry : model.metadata()) {
      for (std::size_t i = 0; i <= values.size(); ++i) {
        const std::vector<std::byte> bytes =
            test::with_value(model, entry.key, i == 0 ? nullptr : &values[i - 1]);
        const std::string what = path.filename().string() + ", " + std::string(entry.key) +
                                 ", value " + std::to_string(i);
        decoders.count(what, [&] {
          test::touch_decoder(File::view(bytes));
          test::touch_forward(File::view(bytes));
        });
        tokenizers.count(what, [&] { test::touch_tokenizer(File::view(bytes)); });
      }
    }
  }
  std::printf("wrong values: decoders: %d taken, %d refused; tokenizers: %d and %d\n",
              decoders.taken, decoders.refused, tokenizers.taken, tokenizers.refused);
  EXPECT_GT(decoders.taken, 100);
  EXPECT_GT(decoders.refused, 1000);
  EXPECT_GT(tokenizers.taken, 1000);
  EXPECT_GT(tokenizers.refused, 500);
}

}  // namespace
}  // namespace edgerunner
