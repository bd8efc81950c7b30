#include "program_test.h"

namespace edgerunner::test {
namespace {

using ::testing::HasSubstr;

using QuantizeCommand = ProgramTest;

TEST_F(QuantizeCommand, WritesAModelThatRuns) {
  const std::string out = folder_ / "q8.gguf";
  const nlohmann::json report = run_json({"quantize", model_, out, "q8_0", "--json"});
  EXPECT_EQ(report["file"], out);
  EXPECT_LT(report["bytes_out"], report["bytes_in"]);
  EXPECT_GT(report["tensors"]["Q8_0"], 0);
  EXPECT_EQ(run_json({"generate", out, "--prompt", "he", "--max-tokens", "3",
                      "--json"})["generated_tokens"],
            3);
}

TEST_F(QuantizeCommand, AnUnknownTypeIsAUsageErrorThatListsTheTypes) {
  const ProgramRun run = run_program({"quantize", model_, folder_ / "out.gguf", "Q9_X"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("Q9_X"));
  EXPECT_THAT(run.err, HasSubstr("Q4_K_M"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out.gguf"));
}

TEST_F(QuantizeCommand, AFolderThatIsNotThereIsNamed) {
  const ProgramRun run = run_program({"quantize", model_, "/nowhere/out.gguf", "Q8_0"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("/nowhere/out.gguf"));
}

TEST_F(QuantizeCommand, TakesTheImportanceMatrixOfAText) {
  const std::string matrix = folder_ / "imatrix.gguf";
  const nlohmann::json report =
      run_json({"imatrix", model_, "--text", "he hehe he", "-o", matrix, "--json"});
  EXPECT_EQ(report["file"], matrix);
  EXPECT_EQ(report["matrices"], 2 * 7 + 1);  // of two layers, and the head
  const std::string out = folder_ / "q4.gguf";
  EXPECT_GT(
      run_json({"quantize", model_, out, "Q4_1", "--imatrix", matrix, "--json"})["tensors"]["Q4_1"],
      0);
  expect_refusal(run_program({"quantize", model_, out, "Q4_1", "--imatrix", model_}), 1,
                 {model_, "importance matrix"});
}

TEST_F(QuantizeCommand, ConvertNamesAFolderThatIsNone) {
  expect_refusal(run_program({"convert", folder_ / "nothing", folder_ / "out.gguf"}), 1,
                 {"nothing", "config.json"});
  expect_refusal(run_program({"convert", folder_.path(), folder_ / "out.gguf", "--type", "Q9"}), 2,
                 {"Q9", "Q4_K_M"});
  expect_refusal(
      run_program({"convert", folder_.path(), folder_ / "out.gguf", "--imatrix", model_}), 1,
      {model_, "importance matrix"});
}

}  // namespace
}  // namespace edgerunner::test
