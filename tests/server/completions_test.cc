#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "server/answers.h"
#include "server/http_client.h"
#include "server/json.h"
#include "server/test_server.h"
#include "support/step_gate.h"

namespace edgerunner::test {
namespace {

using server::Json;
using testing::HasSubstr;

Json complete(const TestServer& server, const Json& body) {
  const HttpAnswer answer = post(server, "/v1/completions", body);
  EXPECT_EQ(answer.status, 200) << answer.body;
  return Json::parse(answer.body);
}

// For what must come true and then stays so: patient, for the machine may be busy.
template <typename Condition>
void wait_until(const Condition& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!condition()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "it never came true";
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(Completions, GivesTextUsageAndReason) {
  TestServer server;
  server.load(say("ab", "hello"));
  const Json answer = complete(server, {{"prompt", "ab"}, {"temperature", 0}});
  EXPECT_EQ(answer["choices"][0]["text"], "hello");
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 2);
  EXPECT_EQ(answer["usage"]["completion_tokens"], 5);
  EXPECT_EQ(answer["object"], "text_completion");
}

TEST(Completions, EndsAtMaxTokens) {
  TestServer server;
  server.load(say("ab", "hello"));
  const Json answer = complete(server, {{"prompt", "ab"}, {"temperature", 0}, {"max_tokens", 2}});
  EXPECT_EQ(answer["choices"][0]["text"], "he");
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
}

TEST(Completions, AnswersEveryPromptAndChoice) {
  TestServer server;
  server.load([](std::span<const TokenId> seen) {
    return seen.size() < 4 ? seen[0] : ScriptedTokenizer::kEnd;
  });
  const Json answer =
      complete(server, {{"prompt", {"ab", "cd"}}, {"temperature", 0}, {"n", 2}, {"echo", true}});
  ASSERT_EQ(answer["choices"].size(), 4U);
  EXPECT_EQ(answer["choices"][1]["text"], "abaa");
  EXPECT_EQ(answer["choices"][2]["text"], "cdcc");
  EXPECT_EQ(answer["choices"][3]["index"], 3);
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 4);
}

// Stops over several tokens, characters over several tokens, and reports of each token.
TEST(Completions, StreamsWhatItAnswersWhole) {
  const std::string text = "a \xF0\x9F\x98\x80 is END here";
  for (const Json& stop : {Json(nullptr), Json("END"), Json({"x", "is EN", "\xF0\x9F\x98\x80"})}) {
    TestServer server;
    server.load(say("ab", text));
    Json body = {
        {"prompt", "ab"}, {"temperature", 0}, {"max_tokens", 100}, {"stop", stop}, {"logprobs", 3}};
    const Json whole = complete(server, body)["choices"][0];
    body["stream"] = true;
    body["stream_options"] = {{"include_usage", true}};
    const std::vector<Json> parts = events(post(server, "/v1/completions", body).body);

    std::string streamed;
    Json tokens = Json::array();
    Json offsets = Json::array();
    Json reason;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const Json& choice = parts[i]["choices"][0];
      streamed += choice["text"];
      for (const Json& token : choice["logprobs"]["tokens"]) tokens.push_back(token);
      for (const Json& offset : choice["logprobs"]["text_offset"]) offsets.push_back(offset);
      reason = choice["finish_reason"];
    }
    EXPECT_EQ(streamed, whole["text"]) << stop;
    EXPECT_EQ(tokens, whole["logprobs"]["tokens"]) << stop;
    EXPECT_EQ(offsets, whole["logprobs"]["text_offset"]) << stop;
    EXPECT_EQ(reason, whole["finish_reason"]) << stop;
    EXPECT_EQ(parts.back()["usage"]["prompt_tokens"], 2);
    EXPECT_EQ(streamed.find("END"), stop.is_null() ? text.find("END") : std::string::npos);
  }
}

TEST(Completions, ReportsTheLikeliestTokens) {
  TestServer server;
  server.load(say("ab", "h"));
  const Json answer = complete(server, {{"prompt", "ab"}, {"temperature", 0}, {"logprobs", 2}});
  const Json& logprobs = answer["choices"][0]["logprobs"];
  EXPECT_EQ(logprobs["tokens"], Json({"h"}));
  EXPECT_EQ(logprobs["top_logprobs"][0].size(), 2U);
  EXPECT_EQ(logprobs["top_logprobs"][0].begin().key(), "h");
  EXPECT_LT(logprobs["token_logprobs"][0].get<double>(), 0);
  EXPECT_GT(logprobs["token_logprobs"][0].get<double>(), -0.01);
}

TEST(Completions, GuessAheadWhereTheRequestAsksForIt) {
  TestServer server;
  server.load(say("ab", "one two three. one two three. one two three."),
              {.lookup_on_request = true});
  Json body = {{"prompt", "ab"}, {"temperature", 0}, {"max_tokens", 99}};
  const auto counts = [&](const Json& answer) {
    const Json& details = answer["usage"]["completion_tokens_details"];
    return std::pair(details["accepted_prediction_tokens"].get<int>(),
                     details["rejected_prediction_tokens"].get<int>());
  };
  HttpClient client(server.port());
  client.get("/v1/models");
  EXPECT_GT(Json::parse(client.receive().body)["data"][0]["draft_tokens"], 0);
  const Json plain = complete(server, body);
  EXPECT_EQ(counts(plain), std::pair(0, 0));
  body["speculate"] = "lookup";
  const Json guessed = complete(server, body);
  EXPECT_GT(counts(guessed).first, 15);
  EXPECT_EQ(guessed["choices"], plain["choices"]);
  EXPECT_EQ(guessed["timings"]["accepted_tokens"], counts(guessed).first);
  body["draft_tokens"] = 1;
  const Json one = complete(server, body);
  EXPECT_LT(counts(one).first, counts(guessed).first);
  EXPECT_EQ(one["choices"], plain["choices"]);
  body["speculate"] = "off";
  EXPECT_EQ(counts(complete(server, body)), std::pair(0, 0));
}

TEST(Completions, NamesTheFieldThatIsWrong) {
  TestServer server;
  server.load(say("ab", "hello"), {.lookup_on_request = true});
  const std::vector<std::pair<std::string, Json>> wrong = {{"temperature", "hot"},
                                                           {"temperature", 3},
                                                           {"top_p", 1.5},
                                                           {"n", 0},
                                                           {"n", 1.5},
                                                           {"max_tokens", -1},
                                                           {"stop", {1}},
                                                           {"stop", ""},
                                                           {"logit_bias", {{"x", 1}}},
                                                           {"seed", "x"},
                                                           {"logit_bias", {{"5", 101}}},
                                                           {"stream", 1},
                                                           {"logprobs", 100},
                                                           {"presence_penalty", 5},
                                                           {"prompt", Json::array()},
                                                           {"prompt", {100000}},
                                                           {"model", 7},
                                                           {"suffix", "x"},
                                                           {"top_k", -1},
                                                           {"seed", 1e300},
                                                           {"speculate", "magic"},
                                                           {"draft_tokens", 0},
                                                           {"draft_tokens", 17},
                                                           {"prompt", nullptr}};
  for (const auto& [field, value] : wrong) {
    Json body = {{"prompt", "ab"}};
    body[field] = value;
    const HttpAnswer answer = post(server, "/v1/completions", body);
    EXPECT_EQ(answer.status, 400) << body;
    const Json error = Json::parse(answer.body)["error"];
    EXPECT_EQ(error["param"], field) << body;
    EXPECT_THAT(error["message"].get<std::string>(), HasSubstr(field));
    EXPECT_EQ(error["type"], "invalid_request_error");
  }
}

TEST(Completions, RefuseToGuessWhereTheTextWouldChange) {
  TestServer server;
  server.load(say("ab", "hello"));
  HttpClient client(server.port());
  client.get("/v1/models");
  EXPECT_EQ(Json::parse(client.receive().body)["data"][0]["draft_tokens"], 0);
  const HttpAnswer answer =
      post(server, "/v1/completions", {{"prompt", "ab"}, {"speculate", "lookup"}});
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(Json::parse(answer.body)["error"]["param"], "speculate");
}

TEST(Completions, RefusesBodiesThatAreNoRequest) {
  TestServer server;
  server.load(say("ab", "hello"));
  for (const std::string& body :
       {std::string(""), std::string("[]"), std::string("{\"prompt\":"),
        std::string("{\"prompt\":\"\xFF\"}"), std::string("{\"top_p\":1e999}"),
        "{\"prompt\":" + std::string(200, '[')}) {
    HttpClient client(server.port());
    client.post("/v1/completions", body);
    const HttpAnswer answer = client.receive();
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_TRUE(Json::parse(answer.body).contains("error"));
  }
}

TEST(Completions, StatesBothNumbersWhereAPromptIsTooLong) {
  TestServer server;
  server.load(say("ab", "hello"), {.context = 64});
  const HttpAnswer answer = post(server, "/v1/completions", {{"prompt", std::string(70, 'x')}});
  EXPECT_EQ(answer.status, 400);
  const Json error = Json::parse(answer.body)["error"];
  EXPECT_THAT(error["message"].get<std::string>(), HasSubstr("70 tokens"));
  EXPECT_THAT(error["message"].get<std::string>(), HasSubstr("64"));
  EXPECT_EQ(error["code"], "context_length_exceeded");
  EXPECT_EQ(error["param"], "prompt");
}

TEST(Completions, RefusesWhileTheModelIsLoading) {
  TestServer server;
  EXPECT_EQ(post(server, "/v1/completions", {{"prompt", "ab"}}).status, 503);
  HttpClient client(server.port());
  client.get("/health");
  EXPECT_EQ(client.receive().status, 503);
  server.load(say("ab", "hello"));
  client.get("/health");
  EXPECT_EQ(client.receive().status, 200);
}

TEST(Completions, AFailureEndsItsOwnRequestAlone) {
  TestServer server;
  ScriptedModelOptions options;
  options.before_forward = [](const Batch& batch) {
    for (const TokenId token : batch.tokens) {
      if (token == 'X') throw Error(ErrorCode::device, "the device failed");
    }
  };
  server.load(
      [](std::span<const TokenId> seen) {
        return seen.size() < 300 ? 'a' : ScriptedTokenizer::kEnd;
      },
      options);
  std::thread other([&server] {
    const Json good = complete(server, {{"prompt", "ab"}, {"max_tokens", 400}, {"temperature", 0}});
    EXPECT_EQ(good["choices"][0]["text"], std::string(298, 'a'));
  });
  EXPECT_EQ(post(server, "/v1/completions", {{"prompt", "X"}}).status, 500);
  Json body = {{"prompt", "X"}, {"stream", true}};
  EXPECT_THAT(post(server, "/v1/completions", body).body, HasSubstr("the device failed"));
  other.join();
}

TEST(Completions, RefusesMoreThanMayRunAndWait) {
  TestServer server({}, {.parallel = 1, .queue = 1});
  StepGate gate;
  server.load(say("ab", "hello"), {.before_forward = gate.hook()});
  HttpClient first(server.port());
  HttpClient second(server.port());
  first.post("/v1/completions", R"({"prompt":"ab","temperature":0})");
  second.post("/v1/completions", R"({"prompt":"ab","temperature":0})");
  wait_until([&] { return server.engine().places_taken() == 2; });
  const HttpAnswer refused = post(server, "/v1/completions", {{"prompt", "ab"}});
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(Json::parse(refused.body)["error"]["code"], "queue_full");
  gate.open();
  EXPECT_EQ(first.receive().status, 200);
  EXPECT_EQ(second.receive().status, 200);
}

TEST(Completions, AClientThatGoesAwayFreesItsPlaceAndPages) {
  TestServer server;
  StepGate gate;
  ScriptedModelOptions options;
  options.max_sequences = 1;
  options.prefill_chunk = 4;
  options.before_forward = gate.hook();
  const ScriptedExecutor* const executor =
      server.load([](std::span<const TokenId>) { return 'a'; }, options);
  const std::string endless = R"({"prompt":"ab","max_tokens":900,"temperature":0,"stream":true})";
  const std::string long_prompt =
      R"({"prompt":")" + std::string(900, 'p') + R"(","max_tokens":900})";
  const auto wait_for_places = [&server](std::uint32_t taken) {
    wait_until([&] { return server.engine().places_taken() == taken; });
  };
  // Each end is noticed while a pass is held; that pass is the last that its sequence costs.
  const auto wait_for_connections = [&server](std::size_t count) {
    wait_until([&] { return server.http().connections() == count; });
  };

  HttpClient decoding(server.port());
  decoding.post("/v1/completions", endless);
  gate.allow(1);  // the prompt, which gives the first a
  decoding.receive_until("\"text\":\"a\"");
  HttpClient queued(server.port());
  queued.post("/v1/completions", long_prompt);
  wait_for_places(2);
  queued.close();
  wait_for_connections(1);
  gate.allow(1);
  wait_for_places(1);
  decoding.close();
  wait_for_connections(0);
  gate.allow(1);
  wait_for_places(0);

  HttpClient prefilling(server.port());
  prefilling.post("/v1/completions", long_prompt);
  gate.allow(20);  // 80 of 900 tokens: the second page has been begun
  wait_until([&] { return server.engine().status().used_pages > 1; });
  prefilling.close();
  wait_for_connections(0);
  gate.allow(1);
  wait_for_places(0);
  wait_until([&] { return server.engine().status().used_pages == 0; });
  EXPECT_EQ(executor->passes().size(), 3U + 21U);
}

// The script repeats the prompt, which it reads back from the pages of the cache.
TEST(Completions, ClientsThatShareACacheForThreeGetTheirOwnText) {
  constexpr std::size_t kPrompt = 100;
  constexpr std::size_t kWhole = 250;
  ScriptedModelOptions options;
  options.max_sequences = 16;
  options.context = 256;
  options.pages = 3 * pages_for(kWhole);
  TestServer server({}, {.parallel = 16, .queue = 16});
  server.load(
      [](std::span<const TokenId> seen) {
        return seen.size() < kWhole ? seen[seen.size() - kPrompt] : ScriptedTokenizer::kEnd;
      },
      options);
  std::vector<std::thread> clients;
  for (int client = 0; client < 16; ++client) {
    clients.emplace_back([&server, client] {
      for (int round = 0; round < 10; ++round) {
        std::string prompt = fmt::format("marker {} of client {}.", round, client);
        prompt.resize(kPrompt, static_cast<char>('a' + client));
        const Json answer =
            complete(server, {{"prompt", prompt}, {"temperature", 0}, {"max_tokens", 200}});
        EXPECT_EQ(answer["choices"][0]["text"], (prompt + prompt).substr(0, kWhole - kPrompt));
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(server.engine().places_taken(), 0U);
}

TEST(Completions, ShutsDownAfterTheLastAnswer) {
  TestServer server;
  StepGate gate;
  server.load(say("ab", std::string(50, 'a')), {.before_forward = gate.hook()});
  HttpClient client(server.port());
  client.post("/v1/completions", R"({"prompt":"ab","max_tokens":60,"temperature":0})");
  wait_until([&] { return server.engine().places_taken() == 1; });
  server.drain();
  gate.open();
  EXPECT_EQ(Json::parse(client.receive().body)["choices"][0]["text"], std::string(50, 'a'));
  server.join();
}

TEST(Routes, AsksForTheKey) {
  TestServer server({}, {}, "secret");
  server.load(say("ab", "hello"));
  HttpClient client(server.port());
  client.get("/v1/models");
  EXPECT_EQ(client.receive().status, 401);
  client.get("/v1/models", "Authorization: Bearer wrongs\r\n");
  EXPECT_EQ(client.receive().status, 401);
  client.get("/v1/models", "Authorization: Bearer secret\r\n");
  EXPECT_EQ(client.receive().status, 200);
  client.get("/health");
  EXPECT_EQ(client.receive().status, 200);
}

TEST(Routes, LetPagesOfOtherSitesCall) {
  server::HttpServerOptions http;
  http.headers = {{"Access-Control-Allow-Origin", "https://example.org"}};
  TestServer server(http, {}, "secret");
  HttpClient client(server.port());
  client.send(
      "OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: x\r\nOrigin: https://example.org\r\n"
      "Access-Control-Request-Method: POST\r\n\r\n");
  const HttpAnswer preflight = client.receive();
  EXPECT_EQ(preflight.status, 204);
  EXPECT_THAT(preflight.headers, HasSubstr("Access-Control-Allow-Methods: GET, POST"));
  EXPECT_THAT(preflight.headers, HasSubstr("Access-Control-Allow-Headers: *, Authorization"));
  client.get("/v1/models");  // a page must be able to read what refuses it
  for (const HttpAnswer& answer : {preflight, client.receive()}) {
    EXPECT_THAT(answer.headers, HasSubstr("Access-Control-Allow-Origin: https://example.org\r\n"));
  }
}

TEST(Routes, AnswerWithLoadingUntilTheModelIsThere) {
  TestServer server;
  for (const char* path : {"/v1/chat/completions", "/v1/completions", "/v1/embeddings",
                           "/v1/responses", "/tokenize", "/detokenize"}) {
    const HttpAnswer answer = post(server, path, Json::object());
    EXPECT_EQ(answer.status, 503) << path;
    EXPECT_EQ(Json::parse(answer.body)["error"]["code"], "model_loading") << path;
  }
  HttpClient client(server.port());
  client.get("/v1/models");
  EXPECT_EQ(client.receive().status, 503);
  client.get("/metrics");
  EXPECT_EQ(client.receive().status, 200);
}

TEST(Routes, KnowsWhatIsNotThere) {
  TestServer server;
  HttpClient client(server.port());
  client.get("/v1/nothing");
  EXPECT_EQ(client.receive().status, 404);
  client.get("/v1/completions");
  const HttpAnswer wrong_method = client.receive();
  EXPECT_EQ(wrong_method.status, 405);
  EXPECT_THAT(wrong_method.headers, HasSubstr("Allow: POST"));
}

TEST(Routes, TokenizesAndBack) {
  TestServer server;
  server.load(say("ab", "hello"));
  const Json ids = Json::parse(post(server, "/tokenize", {{"content", "ab"}}).body);
  EXPECT_EQ(ids["tokens"], Json({97, 98}));
  EXPECT_EQ(Json::parse(post(server, "/detokenize", ids).body)["content"], "ab");
  EXPECT_EQ(post(server, "/detokenize", {{"tokens", {-1}}}).status, 400);
}

TEST(Routes, ShowsMetrics) {
  TestServer server;
  server.load(say("ab", "hello"));
  complete(server, {{"prompt", "ab"}, {"temperature", 0}});
  HttpClient client(server.port());
  client.get("/metrics");
  const std::string text = client.receive().body;
  EXPECT_THAT(text, HasSubstr("\nedgerunner_generated_tokens_total 5\n"));
  EXPECT_THAT(text, HasSubstr("edgerunner_time_to_first_token_seconds_count 1\n"));
}

}  // namespace
}  // namespace edgerunner::test
