#include "program_test.h"

namespace edgerunner::test {
namespace {

class Render : public ProgramTest {};

TEST_F(Render, GivesWhatATemplateMakesOfMessagesOrVariables) {
  const std::string source =
      write_file("t.jinja",
                 "{{ bos_token }}{% for m in messages %}{{ m.content }};{% endfor %}"
                 "{{ strftime_now('%Y') }}");
  const std::string list = write_file("list.json", R"([{"role": "user", "content": "hé"}])");
  const std::string object = write_file(
      "object.json", R"({"messages": [{"content": "a"}, {"content": "b"}], "bos_token": "<s>"})");
  const std::vector<std::string> front = {"render", "--template",          source,
                                          "--now",  "2026-01-02T03:04:05", "--messages"};
  std::vector<std::string> with_list = front;
  with_list.push_back(list);
  EXPECT_EQ(run_program(with_list).out, "hé;2026");
  std::vector<std::string> with_object = front;
  with_object.insert(with_object.end(), {object, "--json"});
  EXPECT_EQ(run_json(with_object)["text"], "<s>a;b;2026");
}

TEST_F(Render, TakesTheTemplateOfAModel) {
  const std::string path = folder_ / "chat.gguf";
  write_tiny_model(path, {.chat_template = "{{ messages[0].role }}{{ eos_token }}"});
  const std::string list = write_file("list.json", R"([{"role": "user", "content": ""}])");
  EXPECT_EQ(run_program({"render", path, "--messages", list}).out, "user<|end|>");
  expect_refusal(run_program({"render", model_, "--messages", list}), 1, {"chat template"});
}

TEST_F(Render, SaysWhatIsWrong) {
  const std::string list = write_file("list.json", "[]");
  const auto render = [&](const std::string& source, const std::string& messages) {
    return run_program(
        {"render", "--template", write_file("t.jinja", source), "--messages", messages});
  };
  expect_refusal(render("a\n{{ 1 + }}", list), 1, {"line 2, column 8"});
  expect_refusal(render("{{ raise_exception('no\\nroles') }}", list), 1, {"no roles"});
  expect_refusal(render("", write_file("bad.json", "[")), 1, {"bad.json"});
  expect_refusal(render("", write_file("bad.json", "3")), 1, {"bad.json"});
  expect_refusal(run_program({"render", "--messages", list}), 2, {"--template"});
  expect_refusal(run_program({"render", "--template", "x", "--messages", list, "--now", "noon"}), 2,
                 {"noon"});
}

}  // namespace
}  // namespace edgerunner::test
