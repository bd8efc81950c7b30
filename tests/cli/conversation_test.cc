#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "program_test.h"

namespace edgerunner::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The command `chat`, its input piped.
class ConversationProgram : public ProgramTest {
 protected:
  ConversationProgram() {
    write_tiny_model(model_,
                     {.context = 1024,
                      .chat_template = "{% for m in messages %}[{{ m.role }}]{{ m.content }}"
                                       "{% endfor %}{% if add_generation_prompt %}[assistant]"
                                       "{% endif %}"});
  }

  ProgramRun chat(const std::string& input, std::vector<std::string> options = {}) const {
    options.insert(options.begin(), {"chat", model_, "--max-tokens", "8", "--ignore-eos"});
    return run_program(options, {.input = input});
  }

  static std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
    return found;
  }
};

TEST_F(ConversationProgram, AnswersLineByLineWithoutPromptsOrColours) {
  const ProgramRun run = chat("hello\nagain\n/exit\nnever\n");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_THAT(run.out, AllOf(Not(HasSubstr("\033[")), Not(HasSubstr("> "))));
  EXPECT_EQ(chat("hello\n").out, run.out.substr(0, chat("hello\n").out.size()));
}

TEST_F(ConversationProgram, ComputesTheNewTurnOnly) {
  const std::string longer(200, 'x');
  const ProgramRun run = chat(longer + "\n" + longer + "\n/stats\n");
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("2 turns"), HasSubstr("reused"), Not(HasSubstr("(0 reused"))));
}

TEST_F(ConversationProgram, SavesAndLoads) {
  const std::string path = folder_ / "saved.json";
  EXPECT_EQ(chat("/system be kind\nhello\n/save " + path + "\n").status, 0);
  const ProgramRun run = chat("/load " + path + "\nmore\n/stats\n/save " + path + "\n");
  EXPECT_THAT(run.out, HasSubstr("2 turns"));
  std::ifstream file(path);
  const auto saved = nlohmann::json::parse(file);
  ASSERT_EQ(saved.size(), 5U);
  EXPECT_EQ(saved[0]["content"], "be kind");
  EXPECT_EQ(saved[1]["content"], "hello");
  EXPECT_EQ(saved[2]["role"], "assistant");
}

TEST_F(ConversationProgram, SavesAWholeFileOrNone) {
  const std::string path = folder_ / "saved.json";
  std::ofstream(path) << "an old conversation";
  // The new one is written beside it, where a folder stands in the way.
  std::filesystem::create_directory(path + ".part");
  const ProgramRun refused = chat("hello\n/save " + path + "\nmore\n/stats\n");
  EXPECT_THAT(refused.err, HasSubstr("can't write '" + path));
  EXPECT_THAT(refused.out, HasSubstr("2 turns"));
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "an old conversation");
  std::filesystem::remove(path + ".part");
  chat("hello\n/save " + path + "\n");
  EXPECT_EQ(nlohmann::json::parse(std::ifstream(path)).size(), 2U);
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));
}

TEST_F(ConversationProgram, TakesInputOfSeveralLines) {
  const std::string path = folder_ / "saved.json";
  chat("one\\\ntwo\n\"\"\"three\nfour\"\"\"\n/save " + path + "\n");
  std::ifstream file(path);
  const auto saved = nlohmann::json::parse(file);
  EXPECT_EQ(saved[0]["content"], "one\ntwo");
  EXPECT_EQ(saved[2]["content"], "three\nfour");
}

TEST_F(ConversationProgram, AnswersAgain) {
  const std::string path = folder_ / "saved.json";
  chat("hi\n/retry\n/save " + path + "\n");
  std::ifstream file(path);
  EXPECT_EQ(nlohmann::json::parse(file).size(), 2U);
}

TEST_F(ConversationProgram, GoesOnAfterAnError) {
  const ProgramRun run = chat("/nosuch\n/retry\n/load /nosuch/file\n/save\n/help\nhi\n/stats\n");
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(count(run.err, "edgerunner: "), 4U) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("/system TEXT"), HasSubstr("1 turn,")));
}

// The answer has no end but by the signal.
TEST_F(ConversationProgram, CtrlCStopsTheAnswerAndNotTheProgram) {
  const std::string letter = std::to_string(tiny_byte_token('x')) + "=1000";
  const ProgramRun run =
      run_program({"chat", model_, "--circular", "--logit-bias", letter},
                  {.input = "hello\n/stats\n", .signal = SIGINT, .signal_after_output = "xxx"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("1 turn,"), HasSubstr("finished: cancelled")));
}

TEST_F(ConversationProgram, NeedsAChatTemplate) {
  write_tiny_model(model_);
  expect_refusal(chat("hi\n"), 1, {"chat template"});
}

}  // namespace
}  // namespace edgerunner::test
