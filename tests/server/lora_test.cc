// The adapters of a request: field "lora", and their list.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/answers.h"
#include "server/test_server.h"
#include "support/lora_fixture.h"

namespace edgerunner::test {
namespace {

using server::Json;
using testing::HasSubstr;

Json use(const Json& id, const Json& scale) {
  Json entry;
  entry["id"] = id;
  entry["scale"] = scale;
  return entry;
}

// A server before a model with two adapters, which takes prompts of token ids.
class LoraServer : public ::testing::Test {
 protected:
  LoraServer() {
    ModelOptions options;
    options.precision = Precision::exact;
    options.threads = 1;
    options.adapters = {{.path = lora_file("llama-a.gguf")},
                        {.path = lora_file("llama-b.gguf"), .scale = 0}};
    server_.engine().set_model(Model::load(lora_file("llama.gguf"), options));
  }

  HttpAnswer ask(const Json& lora) {
    Json body = {{"prompt", {5, 6, 7, 8}}, {"max_tokens", 1}, {"temperature", 0}};
    if (!lora.is_null()) body["lora"] = lora;
    return post(server_, "/v1/completions", body);
  }

  void expect_refusal(const Json& lora, const std::string& param) {
    const HttpAnswer answer = ask(lora);
    EXPECT_EQ(answer.status, 400) << answer.body;
    EXPECT_EQ(Json::parse(answer.body)["error"]["param"], param) << answer.body;
  }

  TestServer server_;
};

TEST_F(LoraServer, ListsWhatWasLoaded) {
  for (const char* path : {"/lora-adapters", "/v1/lora-adapters"}) {
    HttpClient client(server_.port());
    client.get(path);
    const HttpAnswer answer = client.receive();
    EXPECT_EQ(answer.status, 200);
    const Json list = Json::parse(answer.body);
    ASSERT_EQ(list.size(), 2U);
    EXPECT_EQ(list[0]["id"], 0);
    EXPECT_EQ(list[0]["scale"], 1.0);
    EXPECT_THAT(list[0]["path"].get<std::string>(), HasSubstr("llama-a.gguf"));
    EXPECT_EQ(list[1]["id"], 1);
    EXPECT_EQ(list[1]["scale"], 0.0);
    EXPECT_EQ(list[1]["rank"], 32);
  }
}

TEST_F(LoraServer, TakesTheAdaptersOfARequest) {
  EXPECT_EQ(ask(nullptr).status, 200);
  EXPECT_EQ(ask(Json::array()).status, 200);
  EXPECT_EQ(ask(Json::array({use(0, 0.5), use(1, -1)})).status, 200);
}

// The same tokens for other adapters begin anew; for the same ones they are found.
TEST_F(LoraServer, SharesWhatIsCachedOfTheSameAdaptersAlone) {
  const auto reused = [&](const Json& lora) {
    return Json::parse(ask(lora).body)["usage"]["prompt_tokens_details"]["cached_tokens"]
        .get<int>();
  };
  const Json half = Json::array({use(0, 0.5)});
  EXPECT_EQ(reused(nullptr), 0);
  EXPECT_EQ(reused(half), 0);
  EXPECT_EQ(reused(Json::array()), 0);
  EXPECT_EQ(reused(Json::array({use(0, 1)})), 3) << "what a request without the field has";
  EXPECT_EQ(reused(half), 3);
}

TEST_F(LoraServer, NamesWhatIsWrong) {
  expect_refusal(Json::array({use(2, 1)}), "lora[0].id");
  expect_refusal(Json::array({use(0, 1), use(-1, 1)}), "lora[1].id");
  expect_refusal(Json::array({use(0, 1), use(0, 1)}), "lora[1].id");
  expect_refusal(Json::array({use(0, nullptr)}), "lora[0].scale");
  expect_refusal(Json::array({use(nullptr, 1)}), "lora[0].id");
  expect_refusal(Json::array({use(0, "1")}), "lora[0].scale");
  expect_refusal(Json::array({use(0, 1e9)}), "lora[0].scale");
  expect_refusal("llama-a", "lora");
  expect_refusal(Json::array({1}), "lora");
}

}  // namespace
}  // namespace edgerunner::test
