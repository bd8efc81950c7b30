#include "program_test.h"
#include "support/shared_data.h"

namespace edgerunner::test {
namespace {

using Ids = std::vector<TokenId>;

class Tokenize : public ProgramTest {
 protected:
  Ids tokenize(std::vector<std::string> options, const std::string& input = {}) {
    options.insert(options.begin(), {"tokenize", model_, "--json"});
    return run_json(options, {.input = input})["ids"].get<Ids>();
  }

  static Ids bytes(const std::string& text) {
    Ids ids;
    for (const char c : text) ids.push_back(tiny_byte_token(static_cast<unsigned char>(c)));
    return ids;
  }
};

TEST_F(Tokenize, TakesTextFromAnOptionAFileOrStandardInput) {
  const std::string text = "a\nb\xFF";  // bytes, whether UTF-8 or not
  const std::string path = write_file("text", text);
  EXPECT_EQ(tokenize({"--text", text}), bytes(text));
  EXPECT_EQ(tokenize({"--file", path}), bytes(text));
  EXPECT_EQ(tokenize({"-"}, text), bytes(text));
  EXPECT_EQ(tokenize({"--text", "he"}), Ids{kTinyHe});
}

TEST_F(Tokenize, TakesTextThatLooksLikeOptionsOrLists) {
  EXPECT_EQ(tokenize({"--text", "--json"}), bytes("--json"));
  EXPECT_EQ(tokenize({"--text", "-"}), bytes("-"));
  EXPECT_EQ(tokenize({"--text", "[a,b]"}), bytes("[a,b]"));
  EXPECT_EQ(tokenize({"--text", ""}), Ids{});
}

TEST_F(Tokenize, ControlTokensAreTextUnlessParsed) {
  EXPECT_EQ(tokenize({"--text", "<|mark|>"}), bytes("<|mark|>"));
  EXPECT_EQ(tokenize({"--text", "<|mark|>", "--parse-special"}), Ids{kTinyMark});
}

TEST_F(Tokenize, WorksOnAVocabularyWithoutTensors) {
  write_tiny_model(model_, {.tensors = false});
  EXPECT_EQ(tokenize({"--text", "ab"}), bytes("ab"));
}

TEST_F(Tokenize, PlainOutputIsWhatDetokenizeTakes) {
  const ProgramRun ids = run_program({"tokenize", model_, "--text", "he said \xE2\x82\xAC 5\n"});
  EXPECT_EQ(ids.status, 0);
  const ProgramRun text =
      run_program({"detokenize", model_, "--ids", ids.out.substr(0, ids.out.size() - 1)});
  EXPECT_EQ(text.status, 0);
  EXPECT_EQ(text.out, "he said \xE2\x82\xAC 5\n");
}

TEST_F(Tokenize, NeedsExactlyOneSource) {
  expect_refusal(run_program({"tokenize", model_}), 2, {"--text"});
  expect_refusal(run_program({"tokenize", model_, "--text", "x", "-"}), 2, {"--text"});
  expect_refusal(run_program({"tokenize", model_, "--text", "x", "--file", "y"}), 2, {"--file"});
  expect_refusal(run_program({"tokenize", model_, "stray"}), 2, {"stray"});
}

TEST_F(Tokenize, RefusesAFileThatCannotBeRead) {
  const std::string missing = folder_ / "missing.txt";
  expect_refusal(run_program({"tokenize", model_, "--file", missing}), 1, {missing});
  const std::string folder = folder_.path();
  expect_refusal(run_program({"tokenize", model_, "--file", folder}), 1, {folder, "directory"});
}

using Detokenize = ProgramTest;

TEST_F(Detokenize, ShowsControlTokensUnlessSkipped) {
  EXPECT_EQ(run_program({"detokenize", model_, "--ids", "1,258"}).out, "<|mark|>he");
  EXPECT_EQ(run_program({"detokenize", model_, "--ids", "1, 258", "--skip-special"}).out, "he");
}

TEST_F(Detokenize, JsonHoldsValidUtf8) {
  const std::string half = std::to_string(tiny_byte_token(0xE2));
  EXPECT_EQ(run_json({"detokenize", model_, "--ids", half, "--json"})["text"], "\xEF\xBF\xBD");
}

TEST_F(Detokenize, RefusesWhatIsNoTokenId) {
  for (const std::string ids : {"", "1,,2", "1,x", "-1", "1.5", "99999999999", "1,"}) {
    expect_refusal(run_program({"detokenize", model_, "--ids", ids}), 2, {"--ids"});
  }
  expect_refusal(run_program({"detokenize", model_, "--ids", "259"}), 1, {"259"});
}

}  // namespace
}  // namespace edgerunner::test
