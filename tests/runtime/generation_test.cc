#include "edgerunner/generation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "base/utf8.h"
#include "edgerunner/error.h"
#include "support/scripted_model.h"

namespace edgerunner {
namespace {

using test::say;
using test::ScriptedModel;
using test::ScriptedModelOptions;
using test::ScriptedTokenizer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr TokenId kPiece = ScriptedTokenizer::kFirstPiece;

struct Outcome {
  std::vector<std::string> pieces;
  std::string text;
  Summary summary;
};

Outcome stream(Model& model, std::string_view prompt, const GenerateOptions& options = {}) {
  Outcome outcome;
  Generation generation = model.generate(prompt, options);
  for (const std::string& piece : generation) {
    EXPECT_TRUE(is_utf8(piece));
    EXPECT_FALSE(piece.empty());
    outcome.pieces.push_back(piece);
    outcome.text += piece;
  }
  outcome.summary = generation.summary();
  return outcome;
}

// Streamed by iteration and by callback, which must agree.
Outcome run(Model& model, std::string_view prompt, const GenerateOptions& options = {}) {
  Outcome outcome = stream(model, prompt, options);
  std::string again;
  const Summary summary = model.generate(
      prompt,
      [&again](std::string_view piece) {
        again += piece;
        return true;
      },
      options);
  EXPECT_EQ(again, outcome.text);
  EXPECT_EQ(summary.tokens, outcome.summary.tokens);
  EXPECT_EQ(summary.finish_reason, outcome.summary.finish_reason);
  return outcome;
}

TEST(Generation, StreamsWhatTheScriptSaysUntilTheEnd) {
  ScriptedModel script(say("Hi", "yes"));
  const Outcome outcome = run(script.model, "Hi");
  EXPECT_THAT(outcome.pieces, ElementsAre("y", "e", "s"));
  EXPECT_THAT(outcome.summary.tokens, ElementsAre('y', 'e', 's'));
  EXPECT_EQ(outcome.summary.finish_reason, FinishReason::stop);
  EXPECT_EQ(outcome.summary.prompt_tokens, 2U);
  EXPECT_EQ(outcome.summary.generated_tokens, 3U);
  EXPECT_EQ(outcome.summary.context_shifts, 0U);
}

TEST(Generation, EndsAtOnceWhereTheModelDoes) {
  ScriptedModel script(say("Hi", ""));
  const Outcome outcome = run(script.model, "Hi");
  EXPECT_EQ(outcome.text, "");
  EXPECT_EQ(outcome.summary.generated_tokens, 0U);
  EXPECT_EQ(outcome.summary.finish_reason, FinishReason::stop);
}

TEST(Generation, NeverEmitsHalfACharacter) {
  ScriptedModel script(say("p", "aé€😀."));
  EXPECT_THAT(run(script.model, "p").pieces, ElementsAre("a", "é", "€", "😀", "."));
}

TEST(Generation, JoinsCharactersSplitUnevenlyOverTokens) {
  ScriptedModelOptions options;
  options.pieces = {"a\xE2\x82", "\xAC\xF0\x9F", "\x98\x80z"};
  ScriptedModel script(say("p", {kPiece, kPiece + 1, kPiece + 2}), options);
  EXPECT_THAT(run(script.model, "p").pieces, ElementsAre("a", "€", "😀z"));
}

TEST(Generation, ReplacesACharacterThatIsNeverCompleted) {
  ScriptedModel script(say("p", "a\xE2\x82"));
  EXPECT_EQ(run(script.model, "p").text, "a\uFFFD");
}

TEST(Generation, StopsBeforeAStopStringAcrossTokens) {
  ScriptedModel script(say("p", "one\nUser: two"));
  GenerateOptions options;
  options.stop = {"\nUser:"};
  const Outcome outcome = run(script.model, "p", options);
  EXPECT_EQ(outcome.text, "one");
  EXPECT_EQ(outcome.summary.finish_reason, FinishReason::stop);
  EXPECT_EQ(outcome.summary.generated_tokens, 9U) << "the tokens of the stop string count";
}

TEST(Generation, ReleasesTheFalseStartOfAStopString) {
  ScriptedModel script(say("p", "a\nUs. b"));
  GenerateOptions options;
  options.stop = {"\nUser:"};
  EXPECT_THAT(run(script.model, "p", options).pieces, ElementsAre("a", "\nUs.", " ", "b"));
}

TEST(Generation, ReleasesAnUnfinishedStopStringAtTheEnd) {
  ScriptedModel script(say("p", "a\nUser"));
  GenerateOptions options;
  options.stop = {"\nUser:"};
  EXPECT_EQ(run(script.model, "p", options).text, "a\nUser");
  options.max_tokens = 3;
  EXPECT_EQ(run(script.model, "p", options).text, "a\nU");
}

TEST(Generation, FindsAStopStringAtTheEndOfTheOutput) {
  ScriptedModel script(say("p", "done STOP"));
  GenerateOptions options;
  options.stop = {"STOP", "nothing"};
  EXPECT_EQ(run(script.model, "p", options).text, "done ");
}

TEST(Generation, FindsAStopStringWithinOneToken) {
  ScriptedModelOptions model_options;
  model_options.pieces = {"end. STOP and more"};
  ScriptedModel script(say("p", {kPiece}), model_options);
  GenerateOptions options;
  options.stop = {"STOP"};
  EXPECT_EQ(run(script.model, "p", options).text, "end. ");
}

TEST(Generation, StopsBeforeAStopTokenAndLeavesItOut) {
  ScriptedModel script(say("p", "abXcd"));
  GenerateOptions options;
  options.stop_tokens = {'Q', 'X'};
  const Outcome outcome = run(script.model, "p", options);
  EXPECT_EQ(outcome.text, "ab");
  EXPECT_THAT(outcome.summary.tokens, ElementsAre('a', 'b'));
  EXPECT_EQ(outcome.summary.finish_reason, FinishReason::stop);
}

TEST(Generation, GoesOnPastTheEndWhereToldTo) {
  ScriptedModel script(say("p", {'a', ScriptedTokenizer::kEnd, 'b'}));
  GenerateOptions options;
  options.ignore_eos = true;
  options.max_tokens = 3;
  const Outcome outcome = run(script.model, "p", options);
  EXPECT_EQ(outcome.text, "ab");
  EXPECT_THAT(outcome.summary.tokens, ElementsAre('a', ScriptedTokenizer::kEnd, 'b'));
  EXPECT_EQ(outcome.summary.finish_reason, FinishReason::length);
}

TEST(Generation, EndsAtMaxTokens) {
  ScriptedModel script(say("p", "abcdef"));
  GenerateOptions options;
  options.max_tokens = 4;
  const Outcome outcome = run(script.model, "p", options);
  EXPECT_EQ(outcome.text, "abcd");
  EXPECT_EQ(outcome.summary.finish_reason, FinishReason::length);
  EXPECT_EQ(outcome.summary.generated_tokens, 4U);
}

TEST(Generation, EndsWhenTheContextIsFull) {
  ScriptedModelOptions model_options;
  model_options.context = 70;
  ScriptedModel script([](auto) { return 'x'; }, model_options);
  const Outcome outcome = run(script.model, std::string(60, 'p'));
  EXPECT_EQ(outcome.summary.finish_reason, FinishReason::context_full);
  EXPECT_EQ(outcome.summary.generated_tokens, 11U) << "the last one need not be computed";
}

TEST(Generation, RefusesAPromptLongerThanTheContext) {
  ScriptedModelOptions model_options;
  model_options.context = 70;
  ScriptedModel script([](auto) { return 'x'; }, model_options);
  EXPECT_EQ(run(script.model, std::string(70, 'p')).summary.generated_tokens, 1U);
  try {
    script.model.generate(std::string(71, 'p'));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::context_full);
    EXPECT_THAT(error.what(), HasSubstr("71 tokens and the context holds 70"));
  }
}

// What a full context becomes is a fresh prompt of the tokens kept, to the bit: replayed here with
// a session whose logits depend on every token.
TEST(Generation, MovesACircularContextAndCountsIt) {
  ScriptedModelOptions model_options;
  model_options.context = 150;
  const auto pseudo_random = [](auto) { return kNoToken; };
  ScriptedModel script(pseudo_random, model_options);
  ScriptedModel fresh(pseudo_random, model_options);
  Session session = fresh.model.session();
  GenerateOptions options;
  options.circular_context = true;
  options.keep_tokens = 10;
  options.max_tokens = 400;
  options.ignore_eos = true;
  const std::string prompt = "a prompt whose first ten tokens are kept";
  const Outcome outcome = stream(script.model, prompt, options);
  EXPECT_EQ(outcome.summary.finish_reason, FinishReason::length);

  std::vector<TokenId> tokens = ScriptedTokenizer().encode(prompt, {});
  std::uint32_t shifts = 0;
  for (const TokenId generated : outcome.summary.tokens) {
    ASSERT_EQ(session.greedy_token(tokens).token, generated);
    tokens.push_back(generated);
    if (tokens.size() > 150) {
      tokens.erase(tokens.begin() + 10, tokens.begin() + 10 + (tokens.size() - 10 + 1) / 2);
      ++shifts;
    }
  }
  EXPECT_EQ(outcome.summary.context_shifts, shifts);
  EXPECT_GT(shifts, 3U);
}

TEST(Generation, ShortensALongPromptWhereTheContextIsCircular) {
  ScriptedModelOptions model_options;
  model_options.context = 100;
  std::vector<TokenId> seen_first;
  ScriptedModel script(
      [&](std::span<const TokenId> seen) {
        if (seen_first.empty()) seen_first.assign(seen.begin(), seen.end());
        return ScriptedTokenizer::kEnd;
      },
      model_options);
  GenerateOptions options;
  options.circular_context = true;
  options.keep_tokens = 4;
  const Outcome outcome = stream(script.model, "keep" + std::string(150, 'a') + "tail", options);
  EXPECT_EQ(outcome.summary.context_shifts, 1U);
  const std::string text = ScriptedTokenizer().decode(seen_first, false);
  EXPECT_EQ(text, "keep" + std::string(73, 'a') + "tail");
}

TEST(Generation, ReusesThePrefixOfAnEarlierPrompt) {
  ScriptedModel script([](auto) { return ScriptedTokenizer::kEnd; });
  const std::string prompt(200, 'p');
  EXPECT_EQ(stream(script.model, prompt).summary.reused_tokens, 0U);
  EXPECT_EQ(stream(script.model, prompt).summary.reused_tokens, 199U);
  EXPECT_EQ(stream(script.model, prompt + "more").summary.reused_tokens, 200U);
  EXPECT_EQ(stream(script.model, prompt.substr(0, 100) + "q").summary.reused_tokens, 100U);
  EXPECT_EQ(stream(script.model, "q" + prompt).summary.reused_tokens, 0U);
  script.model.trim_memory();
  EXPECT_EQ(stream(script.model, prompt).summary.reused_tokens, 0U);
}

TEST(Generation, ReusesWhatWasGeneratedToo) {
  ScriptedModel script(say("question", " answer"));
  stream(script.model, "question");
  EXPECT_EQ(stream(script.model, "question answer, again").summary.reused_tokens, 15U);
}

TEST(Generation, DrawsTheSameTextForTheSameSeed) {
  ScriptedModel script([](auto) { return kNoToken; });
  GenerateOptions options;
  options.sampling.temperature = 1.0F;
  options.sampling.seed = 5;
  options.max_tokens = 50;
  options.ignore_eos = true;
  const auto first = stream(script.model, "p", options).summary.tokens;
  EXPECT_EQ(stream(script.model, "p", options).summary.tokens, first);
  options.sampling.seed = 6;
  EXPECT_NE(stream(script.model, "p", options).summary.tokens, first);
}

TEST(Generation, MeasuresTimes) {
  ScriptedModel script(say("p", "abc"));
  const Summary summary = stream(script.model, "p").summary;
  EXPECT_GT(summary.time_to_first_token_s, 0);
  EXPECT_GT(summary.prefill_tps, 0);
  EXPECT_GT(summary.decode_tps, 0);
}

TEST(Generation, RefusesBadOptionsAtOnce) {
  ScriptedModel script(say("p", "abc"));
  const auto code = [&](std::span<const TokenId> prompt, const GenerateOptions& options) {
    try {
      script.model.generate(prompt, options);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::io;
  };
  const std::vector<TokenId> prompt = {'p'};
  const std::vector<TokenId> outside = {'p', 257};
  EXPECT_EQ(code({}, {}), ErrorCode::invalid_argument);
  EXPECT_EQ(code(outside, {}), ErrorCode::invalid_argument);
  GenerateOptions options;
  options.sampling.top_p = 2;
  EXPECT_EQ(code(prompt, options), ErrorCode::invalid_argument);
  options = {};
  options.stop = {""};
  EXPECT_EQ(code(prompt, options), ErrorCode::invalid_argument);
  options = {};
  options.circular_context = true;
  options.keep_tokens = 1024;
  EXPECT_EQ(code(prompt, options), ErrorCode::invalid_argument);
}

TEST(Generation, WorksOnIdsWhereThereIsNoTokenizer) {
  ScriptedModelOptions model_options;
  model_options.tokenizer = false;
  ScriptedModel script(say("p", "abc"), model_options);
  EXPECT_THROW(script.model.tokenizer(), Error);
  EXPECT_THROW(script.model.generate("p"), Error);
  GenerateOptions options;
  options.max_tokens = 3;
  const std::vector<TokenId> prompt = {'p'};
  Generation generation = script.model.generate(prompt, options);
  EXPECT_EQ(generation.begin(), generation.end());
  EXPECT_THAT(generation.summary().tokens, ElementsAre('a', 'b', 'c'));
  options.stop = {"x"};
  EXPECT_THROW(script.model.generate(prompt, options), Error);
}

TEST(Generation, HoldsTheModelToAGrammar) {
  ScriptedModel script(say("p", "zzz"));
  GenerateOptions options;
  options.grammar = "root ::= \"ab\" [x-z]";
  const Outcome outcome = run(script.model, "p", options);
  EXPECT_EQ(outcome.text, "abz");
  EXPECT_EQ(outcome.summary.finish_reason, FinishReason::stop);
}

TEST(Generation, EndsWithAWholeTextWhereTheModelWouldEndEarly) {
  ScriptedModel script(say("p", ""));
  GenerateOptions options;
  options.json_schema = R"({"const": [1]})";
  EXPECT_EQ(run(script.model, "p", options).text, "[1]");
}

TEST(Generation, RefusesAConstraintThatCannotBeKept) {
  ScriptedModel script(say("p", "abc"));
  GenerateOptions options;
  options.json_schema = R"({"not": {}})";
  EXPECT_THROW(script.model.generate("p", options), Error);
  options.json_schema = "{}";
  options.grammar = "root ::= \"a\"";
  EXPECT_THROW(script.model.generate("p", options), Error);
}

TEST(Generation, ShowsControlTokensThatAreAskedFor) {
  ScriptedModelOptions model_options;
  model_options.pieces = {"<mark>"};
  ScriptedModel script(say("p", {'a', kPiece, 'b'}), model_options);
  GenerateOptions options;
  options.visible_tokens = {kPiece};
  EXPECT_EQ(run(script.model, "p", options).text, "a<mark>b");
}

}  // namespace
}  // namespace edgerunner
