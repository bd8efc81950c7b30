#include "quantize/importance_matrix.h"

#include <gmock/gmock.h>

#include <cmath>

#include "gguf/writer.h"
#include "quantize/quantize_file.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "tensor/dequantize.h"

namespace edgerunner {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Importance : public ::testing::Test {
 protected:
  test::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "imatrix.gguf";
};

TEST_F(Importance, IsTheMeanSquareOfTheInputsOverTheMeanOfAllColumns) {
  ImportanceMatrix matrix;
  matrix.add("w", 1, 0, std::vector<float>{1, 2, 0, 1});
  matrix.add("w", 1, 0, std::vector<float>{1, -2, 0, 1});
  EXPECT_THAT(matrix.weights("w", 4, 1), ElementsAre(2.F / 3, 8.F / 3, 1e-3F, 2.F / 3));
  EXPECT_THAT(matrix.weights("w", 5, 1), IsEmpty());
  EXPECT_THAT(matrix.weights("w", 4, 2), IsEmpty());
  EXPECT_THAT(matrix.weights("v", 4, 1), IsEmpty());
}

TEST_F(Importance, KeepsExpertsApartAndTreatsAnUnseenOneEvenly) {
  ImportanceMatrix matrix;
  matrix.add("w", 3, 2, std::vector<float>{3, 1});
  matrix.add("w", 3, 0, std::vector<float>{1, 1});
  EXPECT_THAT(matrix.weights("w", 2, 3), ElementsAre(1, 1, 1, 1, 1.8F, 0.2F));
}

TEST_F(Importance, ComesBackFromItsFile) {
  ImportanceMatrix matrix;
  matrix.add("blk.0.attn_q.weight", 1, 0, std::vector<float>{1, 2});
  matrix.add("blk.0.ffn_up_exps.weight", 2, 1, std::vector<float>{3, 1});
  matrix.save(path_, "text", 1, 512);
  const ImportanceMatrix read = ImportanceMatrix::load(path_);
  EXPECT_EQ(read.size(), 2U);
  EXPECT_EQ(read.weights("blk.0.attn_q.weight", 2, 1), matrix.weights("blk.0.attn_q.weight", 2, 1));
  EXPECT_EQ(read.weights("blk.0.ffn_up_exps.weight", 2, 2),
            matrix.weights("blk.0.ffn_up_exps.weight", 2, 2));
}

TEST_F(Importance, RefusesFilesThatAreNone) {
  const auto write = [&](const std::string& type, float value, bool counts) {
    gguf::Writer writer(path_);
    writer.set("general.type", type);
    const std::uint64_t cols[] = {2};
    const std::uint64_t one[] = {1};
    writer.declare("w.in_sum2", ElementType::f32, cols);
    if (counts) writer.declare("w.counts", ElementType::f32, one);
    const float values[] = {1, value};
    writer.write("w.in_sum2", std::as_bytes(std::span(values)));
    if (counts) writer.write("w.counts", std::as_bytes(std::span(values)).first(4));
    writer.finish();
  };
  const auto refused = [&](const std::string& part) {
    test::expect_error(ErrorCode::invalid_file, part, [&] { ImportanceMatrix::load(path_); });
  };
  write("model", 1, true);
  refused("importance matrix");
  write("imatrix", 1, false);
  refused("w.in_sum2");
  write("imatrix", NAN, true);
  refused("w.in_sum2");
  write("imatrix", -1, true);
  refused("w.in_sum2");
}

// Half of the columns count a thousand times as much: their error falls.
TEST_F(Importance, MovesTheErrorToWhereItCountsLess) {
  constexpr std::uint64_t kCols = 256;
  constexpr std::uint64_t kRows = 8;
  std::vector<float> values(kCols * kRows);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(static_cast<float>(i * i % 977)) + (i % 2 == 0 ? 0.0F : 0.3F);
  }
  const std::filesystem::path in = folder_ / "in.gguf";
  gguf::Writer writer(in);
  writer.set("general.architecture", std::string("llama"));
  const std::uint64_t shape[] = {kCols, kRows};
  writer.declare("blk.0.ffn_up.weight", ElementType::f32, shape);
  writer.write("blk.0.ffn_up.weight", std::as_bytes(std::span(values)));
  writer.finish();
  ImportanceMatrix matrix;
  std::vector<float> input(kCols);
  for (std::size_t i = 0; i < kCols; ++i) input[i] = i % 2 == 0 ? 30.0F : 1.0F;
  matrix.add("blk.0.ffn_up.weight", 1, 0, input);

  const auto error_of_even = [&](std::string_view type, const ImportanceMatrix* importance) {
    const std::filesystem::path out = folder_ / "out.gguf";
    QuantizeOptions options;
    options.importance = importance;
    quantize_file(gguf::File::open(in), out, find_recipe(type).value(), options);
    const gguf::File file = gguf::File::open(out);
    std::vector<float> got(values.size());
    dequantize(file.tensors()[0].type, file.tensors()[0].data, got);
    float sum = 0;
    for (std::size_t i = 0; i < got.size(); i += 2) {
      sum += (got[i] - values[i]) * (got[i] - values[i]);
    }
    return sum;
  };
  for (const std::string_view type : {"Q2_K", "Q3_K", "Q4_K", "IQ4_NL", "Q4_0", "Q4_1"}) {
    EXPECT_LT(error_of_even(type, &matrix), 0.9F * error_of_even(type, nullptr)) << type;
  }
}

}  // namespace
}  // namespace edgerunner
