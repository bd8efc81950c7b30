#include "program_test.h"

namespace edgerunner::test {
namespace {

using ::testing::HasSubstr;

using Verify = ProgramTest;

TEST_F(Verify, PassesInBothPrecisions) {
  for (const char* precision : {"exact", "fast"}) {
    const nlohmann::json report =
        run_json({"verify", model_, "--precision", precision, "--greedy", "8", "--json"});
    EXPECT_EQ(report["verdict"], "pass") << report["failures"];
    EXPECT_EQ(report["positions"].size(), 48);
    EXPECT_LE(report["error"], report["bounds"]["error"]);
    EXPECT_LE(report["mean_kl"], report["bounds"]["mean_kl"]);
    EXPECT_EQ(report["backend"], "cpu");
  }
}

TEST_F(Verify, SaysWhatIsOutOfBoundsAndFails) {
  const ProgramRun run =
      run_program({"verify", model_, "--text", "hello", "--max-error", "1e-9", "--greedy", "0"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out, HasSubstr("verdict                fail"));
  EXPECT_THAT(run.err, HasSubstr("a logit is off"));
  EXPECT_THAT(run.err, HasSubstr(model_));
}

TEST_F(Verify, TheReferenceIsItself) {
  const nlohmann::json report =
      run_json({"verify", model_, "--ids", "1,2,3,4", "--backend", "reference", "--json"});
  EXPECT_EQ(report["error"], 0);
  EXPECT_EQ(report["greedy"]["diverged"], nullptr);
}

TEST_F(Verify, RefusesWhatItCannotCompare) {
  expect_refusal(run_program({"verify", model_, "--ids", "1,900"}), 1, {"900"});
  expect_refusal(run_program({"verify", model_, "--tokens", "0"}), 2, {"--tokens"});
  expect_refusal(run_program({"verify", model_, "--ids", "1", "--text", "h"}), 2, {"--ids"});
}

}  // namespace
}  // namespace edgerunner::test
