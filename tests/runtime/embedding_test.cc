#include "edgerunner/embedding.h"

#include <gtest/gtest.h>

#include <stop_token>
#include <vector>

#include "edgerunner/model.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "support/tiny_model.h"

namespace edgerunner {
namespace {

class EmbeddingTest : public ::testing::Test {
 protected:
  Model tiny() {
    test::write_tiny_model(folder_ / "tiny.gguf", {.context = 64});
    return Model::load(folder_ / "tiny.gguf");
  }

 private:
  test::TemporaryFolder folder_;
};

TEST_F(EmbeddingTest, IsOfUnitLengthAndTheSameForTextAndIds) {
  Model model = tiny();
  const std::vector<float> embedding = embed(model, "the end");
  ASSERT_EQ(embedding.size(), embedding_size(model));
  double squares = 0;
  for (const float value : embedding) squares += double{value} * value;
  EXPECT_NEAR(squares, 1, 1e-5);
  const auto ids = model.tokenizer().encode("the end");
  EXPECT_EQ(embed(model, ids), embedding);
  EXPECT_NE(embed(model, ids, Pooling::last), embedding);
}

TEST_F(EmbeddingTest, OfOneTokenIsTheSameByEitherPooling) {
  Model model = tiny();
  const std::vector<TokenId> ids = {5};
  EXPECT_EQ(embed(model, ids, Pooling::last), embed(model, ids, Pooling::mean));
}

TEST_F(EmbeddingTest, RefusesWhatCannotBeComputed) {
  Model model = tiny();
  const auto embed_ids = [&](std::vector<TokenId> ids) {
    return [&model, ids] { embed(model, ids); };
  };
  test::expect_error(ErrorCode::invalid_argument, "no tokens", embed_ids({}));
  test::expect_error(ErrorCode::invalid_argument, "token -1", embed_ids({1, -1}));
  test::expect_error(ErrorCode::context_full, "65 tokens", embed_ids(std::vector<TokenId>(65, 5)));
}

TEST_F(EmbeddingTest, IsCancelledByItsStopToken) {
  Model model = tiny();
  std::stop_source stop;
  stop.request_stop();
  test::expect_error(ErrorCode::cancelled, "cancelled",
                     [&] { embed(model, "the end", Pooling::mean, stop.get_token()); });
}

}  // namespace
}  // namespace edgerunner
