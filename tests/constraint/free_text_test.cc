#include "constraint/free_text.h"

#include <gtest/gtest.h>

#include <memory>

#include "constraint/accepts.h"

namespace edgerunner {
namespace {

using test::accepts;

std::shared_ptr<const Grammar> up_to(std::string_view mark, bool may_end_before) {
  GrammarBuilder builder;
  const NodeId next = builder.literal("!", GrammarBuilder::kEnd);
  const NodeId without = may_end_before ? GrammarBuilder::kEnd : GrammarBuilder::kNothing;
  return std::make_shared<const Grammar>(builder.finish(text_up_to(builder, mark, next, without)));
}

TEST(FreeText, GoesOnBehindTheFirstMark) {
  const auto grammar = up_to("</a>", false);
  for (const char* text : {"</a>!", "x</a>!", "<</a>!", "</</a>!", "</a</a>!", "\xFF\n</a>!"}) {
    EXPECT_TRUE(accepts(grammar, text)) << text;
  }
  for (const char* text : {"", "x", "</a>", "</a>x</a>!", "</a>!!", "</A>!"}) {
    EXPECT_FALSE(accepts(grammar, text)) << text;
  }
}

TEST(FreeText, FindsMarksThatRepeatTheirBeginning) {
  const auto grammar = up_to("aab", false);
  EXPECT_TRUE(accepts(grammar, "aaab!"));
  EXPECT_TRUE(accepts(grammar, "abaaab!"));
  EXPECT_FALSE(accepts(grammar, "aabaab!"));
}

TEST(FreeText, MayEndBeforeTheMarkWhereThatIsAllowed) {
  const auto grammar = up_to("</a>", true);
  EXPECT_TRUE(accepts(grammar, ""));
  EXPECT_TRUE(accepts(grammar, "x</a"));
  EXPECT_TRUE(accepts(grammar, "x</a>!"));
  EXPECT_FALSE(accepts(grammar, "x</a>"));
}

TEST(FreeText, AnyTextIsAnyBytes) {
  GrammarBuilder builder;
  const auto grammar =
      std::make_shared<const Grammar>(builder.finish(any_text(builder, GrammarBuilder::kEnd)));
  EXPECT_TRUE(accepts(grammar, ""));
  EXPECT_TRUE(accepts(grammar, "a\xFF\n"));
}

}  // namespace
}  // namespace edgerunner
