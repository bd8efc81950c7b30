#include <gtest/gtest.h>

#include <future>
#include <string>
#include <utility>
#include <vector>

#include "edgerunner/error.h"
#include "expect_stop.h"
#include "runtime/generation_task.h"
#include "runtime/lookup_drafter.h"
#include "support/expect_error.h"
#include "support/scripted_model.h"

// Guessing ahead: whatever is guessed, what is generated is what is generated without, and nothing
// of a wrong guess stays.

namespace edgerunner::test {
namespace {

// One of a few letters, by all that was seen: a text with short repetitions, in which a wrong cache
// shows at once.
TokenId few_letters(std::span<const TokenId> seen) {
  std::uint64_t hash = 17;
  for (const TokenId token : seen)
    hash = hash * 6364136223846793005U + static_cast<unsigned>(token);
  return static_cast<TokenId>(hash >> 33) % 3 + 'a';
}

// Guesses the likeliest tokens, and every so often wrongly.
class ErringDrafter : public Drafter {
 public:
  ErringDrafter(ScriptedExecutor::Script script, std::uint32_t period)
      : script_(std::move(script)), period_(period) {}
  void draft(std::span<const DraftRequest> requests) override {
    for (const DraftRequest& request : requests) {
      std::vector<TokenId> tokens(request.tokens.begin(), request.tokens.end());
      while (request.guesses->size() < request.most) {
        TokenId token = script_(tokens);
        if (period_ > 0 && ++guesses_ % period_ == 0) token = (token + 1) % 256;
        request.guesses->push_back(token);
        tokens.push_back(token);
      }
    }
  }
  void forget(std::uint64_t) override {}

 private:
  ScriptedExecutor::Script script_;
  std::uint32_t period_;
  std::uint32_t guesses_ = 0;
};

using MakeDrafter = std::function<std::unique_ptr<Drafter>()>;

MakeDrafter erring(std::uint32_t period) {
  return [period] { return std::make_unique<ErringDrafter>(few_letters, period); };
}
const MakeDrafter kLookup = [] { return std::make_unique<LookupDrafter>(); };
const MakeDrafter kDrafters[] = {kLookup, erring(0), erring(1), erring(2), erring(5)};

// Everything that a generation gives.
struct Record : GenerationSink {
  std::optional<std::uint32_t> reports() const override { return wanted; }
  void report(TokenReport report) override {
    for (const TokenLogprob& logprob : report.likeliest) {
      logprobs.emplace_back(logprob.token, logprob.logprob);
    }
    logprobs.emplace_back(report.chosen.token, report.chosen.logprob);
    logprobs.emplace_back(report.text_begin, 0.0F);
  }
  void put(std::string piece) override { pieces.push_back(std::move(piece)); }
  void end(Summary result) noexcept override { done.set_value(std::move(result)); }
  void end_with(const std::exception_ptr& failure) noexcept override {
    done.set_exception(failure);
  }

  std::optional<std::uint32_t> wanted;
  std::vector<std::pair<std::size_t, float>> logprobs;
  std::vector<std::string> pieces;
  std::promise<Summary> done;
};

std::shared_ptr<Record> start(ScriptedModel& scripted, const std::string& prompt,
                              const GenerateOptions& options,
                              std::optional<std::uint32_t> reports = std::nullopt) {
  auto record = std::make_shared<Record>();
  record->wanted = reports;
  Model::State& state = state_of(scripted.model);
  const GenerationLimits limits{.vocab_size = state.info.vocab_size,
                                .context = state.info.context,
                                .draft_tokens = state.info.draft_tokens,
                                .trie = &state.trie};
  state.scheduler->submit(std::make_shared<GenerationTask>(
      state.tokenizer.get(), limits, state.tokenizer->encode(prompt, {}), options, record));
  return record;
}

// The same with and without guesses, piece by piece and bit by bit. Gives the tokens guessed right.
std::uint32_t expect_same(const ScriptedModelOptions& model_options, const GenerateOptions& options,
                          const MakeDrafter& drafter,
                          std::optional<std::uint32_t> reports = std::nullopt) {
  ScriptedModel plain(few_letters, model_options);
  const auto expected = start(plain, "begin", options, reports);
  const Summary wanted = expected->done.get_future().get();
  ScriptedModelOptions guessing_options = model_options;
  guessing_options.drafter = drafter;
  ScriptedModel guessing(few_letters, guessing_options);
  const auto got = start(guessing, "begin", options, reports);
  const Summary summary = got->done.get_future().get();
  EXPECT_EQ(summary.tokens, wanted.tokens);
  EXPECT_EQ(summary.finish_reason, wanted.finish_reason);
  EXPECT_EQ(summary.context_shifts, wanted.context_shifts);
  EXPECT_EQ(got->pieces, expected->pieces);
  EXPECT_EQ(got->logprobs, expected->logprobs);
  EXPECT_EQ(wanted.drafted_tokens, 0U);
  EXPECT_LE(summary.accepted_tokens, summary.drafted_tokens);
  return summary.accepted_tokens;
}

GenerateOptions tokens(std::uint32_t count) {
  GenerateOptions options;
  options.max_tokens = count;
  return options;
}

GenerateOptions random_options(std::uint32_t count) {
  GenerateOptions options = tokens(count);
  options.sampling.temperature = 8;  // the script's token stands out by 20
  options.sampling.top_p = 0.95F;
  options.sampling.repeat_penalty = 1.2F;
  options.sampling.frequency_penalty = 0.1F;
  options.sampling.seed = 5;
  return options;
}

TEST(Speculation, GivesTheSameGreedyTokens) {
  for (const MakeDrafter& drafter : kDrafters) expect_same({}, tokens(300), drafter);
}

TEST(Speculation, GivesTheSameDrawsWithPenaltiesAndLogprobs) {
  for (const MakeDrafter& drafter : kDrafters) {
    expect_same({}, random_options(300), drafter);
    expect_same({}, random_options(100), drafter, 5);
  }
}

TEST(Speculation, TakesEveryRightGuessAndCountsThem) {
  ScriptedModel scripted(few_letters, {.drafter = erring(0)});
  const Summary summary = scripted.model.generate("begin", tokens(18)).summary();
  EXPECT_EQ(summary.generated_tokens, 18U);
  EXPECT_EQ(summary.drafted_tokens, 16U);
  EXPECT_EQ(summary.accepted_tokens, 16U);
  EXPECT_EQ(scripted.executor->passes().size(), 2U);  // the prompt, and all the rest
}

TEST(Speculation, GuessesByLookupWhereATextRepeats) {
  const std::string said = "one two three four. one two three four. one two three four.";
  ScriptedModel plain(say("begin", said));
  ScriptedModel guessing(say("begin", said), {.drafter = kLookup});
  const Summary expected = plain.model.generate("begin", tokens(0)).summary();
  const Summary summary = guessing.model.generate("begin", tokens(0)).summary();
  EXPECT_EQ(summary.tokens, expected.tokens);
  EXPECT_GT(summary.accepted_tokens, 25U);
  EXPECT_LT(guessing.executor->passes().size(), plain.executor->passes().size() - 20);
}

constexpr const char* kRepeating = "one two three four. one two three four. one two three four.";

// Its own choice counts before the model's, and the text is the same.
TEST(Speculation, IsEachGenerationsToDecide) {
  ScriptedModel on_request(say("begin", kRepeating), {.lookup_on_request = true});
  GenerateOptions lookup;
  lookup.guessing = Guessing::lookup;
  const Summary plain = on_request.model.generate("begin").summary();
  EXPECT_EQ(plain.drafted_tokens, 0U);
  const Summary asked = on_request.model.generate("begin", lookup).summary();
  EXPECT_GT(asked.accepted_tokens, 25U);
  EXPECT_EQ(asked.tokens, plain.tokens);

  ScriptedModel drafting(say("begin", kRepeating), {.drafter = erring(1)});
  EXPECT_GT(drafting.model.generate("begin").summary().drafted_tokens, 0U);
  EXPECT_GT(drafting.model.generate("begin", lookup).summary().accepted_tokens, 25U);
  GenerateOptions off;
  off.guessing = Guessing::off;
  const Summary without = drafting.model.generate("begin", off).summary();
  EXPECT_EQ(without.drafted_tokens, 0U);
  EXPECT_EQ(without.tokens, plain.tokens);
}

TEST(Speculation, GuessesNoMoreAtOnceThanAGenerationAllows) {
  ScriptedModel scripted(few_letters, {.drafter = erring(0)});
  GenerateOptions options = tokens(19);
  options.draft_tokens = 2;
  EXPECT_EQ(scripted.model.generate("begin", options).summary().accepted_tokens, 12U);
  for (const ScriptedExecutor::Pass& pass : scripted.executor->passes()) {
    if (pass[0].start == 0) continue;  // the prompt
    EXPECT_EQ(pass[0].rows, 3U);
  }
}

TEST(Speculation, BesideGenerationsThatGuessOtherwise) {
  ScriptedModel guessing(few_letters, {.drafter = erring(4)});
  std::vector<std::shared_ptr<Record>> records;
  const auto options = [](std::uint32_t i) {
    GenerateOptions each = random_options(90);
    each.sampling.seed = i;
    each.guessing = static_cast<Guessing>(i % 3);
    return each;
  };
  for (std::uint32_t i = 0; i < 9; ++i) records.push_back(start(guessing, "begin", options(i)));
  for (std::uint32_t i = 0; i < 9; ++i) {
    ScriptedModel plain(few_letters, {.lookup_on_request = true});
    EXPECT_EQ(records[i]->done.get_future().get().tokens,
              plain.model.generate("begin", options(i)).summary().tokens)
        << i;
  }
}

TEST(Speculation, ByLookupNeedsRoomForGuesses) {
  ScriptedModel plain(few_letters);
  GenerateOptions lookup;
  lookup.guessing = Guessing::lookup;
  expect_error(ErrorCode::invalid_argument, "on_request",
               [&] { plain.model.generate("begin", lookup); });
}

TEST(Speculation, EndsAtAStopStringWhereverItIs) {
  for (std::size_t length = 1; length < 24; ++length) {
    const std::string said = std::string(length, 'a') + "<end>" + std::string(20, 'a') + "<end>";
    const MakeDrafter drafter = [&] {
      return std::make_unique<ErringDrafter>(say("begin", said), 9);
    };
    ScriptedModel guessing(say("begin", said), {.drafter = drafter});
    ScriptedModel fresh(say("begin", said));
    expect_stop(guessing, fresh, length);
  }
}

TEST(Speculation, HoldsToAGrammar) {
  GenerateOptions options = random_options(200);
  options.grammar = R"(root ::= ("ab" | "ba" | "c")+)";
  for (const MakeDrafter& drafter : kDrafters) expect_same({}, options, drafter);
  GenerateOptions schema;
  schema.json_schema = R"({"const": [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]})";
  expect_same({}, schema, kLookup);
}

TEST(Speculation, EndsAtTheContextsEndAndGoesOnInACircularOne) {
  for (const MakeDrafter& drafter : kDrafters) {
    expect_same({.context = 64, .pages = 4}, tokens(1000), drafter);
    GenerateOptions circular = random_options(400);
    circular.circular_context = true;
    circular.keep_tokens = 3;
    expect_same({.context = 100, .pages = 8}, circular, drafter);
  }
}

TEST(Speculation, RollsBackBehindASlidingWindow) {
  for (const MakeDrafter& drafter : kDrafters) {
    expect_same({.pages = 16, .window = 70}, random_options(700), drafter);
  }
}

// Prefixes that later prompts find are of the text, never of wrong guesses.
TEST(Speculation, CachesNothingOfWrongGuesses) {
  ScriptedModel guessing(few_letters, {.drafter = erring(3)});
  ScriptedModel plain(few_letters);
  std::string prompt = "begin";
  for (int turn = 0; turn < 6; ++turn) {
    const Summary expected = plain.model.generate(prompt, random_options(150)).summary();
    const Summary summary = guessing.model.generate(prompt, random_options(150)).summary();
    EXPECT_EQ(summary.tokens, expected.tokens);
    EXPECT_EQ(summary.reused_tokens, expected.reused_tokens);
    prompt += plain.model.tokenizer().decode(expected.tokens) + "!";
    plain.model.generate(prompt + "other", random_options(5)).summary();
    guessing.model.generate(prompt + "other", random_options(5)).summary();
  }
}

void expect_each_as_alone(const ScriptedModelOptions& options) {
  ScriptedModel guessing(few_letters, options);
  std::vector<std::shared_ptr<Record>> records;
  for (std::uint32_t i = 0; i < 12; ++i) {
    GenerateOptions each = random_options(40 + 23 * i);
    each.sampling.seed = i;
    records.push_back(start(guessing, std::string(i * 17 % 100 + 1, 'x'), each));
  }
  for (std::uint32_t i = 0; i < 12; ++i) {
    GenerateOptions each = random_options(40 + 23 * i);
    each.sampling.seed = i;
    ScriptedModel plain(few_letters);
    EXPECT_EQ(records[i]->done.get_future().get().tokens,
              plain.model.generate(std::string(i * 17 % 100 + 1, 'x'), each).summary().tokens)
        << i;
  }
}

TEST(Speculation, ServesSeveralGenerationsAtOnce) {
  for (const MakeDrafter& drafter : kDrafters) expect_each_as_alone({.drafter = drafter});
  expect_each_as_alone({.prefill_chunk = 1, .drafter = erring(4)});
}

TEST(Speculation, GivesUpGuessesWherePagesAreScarce) {
  expect_each_as_alone({.context = 512, .pages = 8, .drafter = erring(4)});
}

TEST(Speculation, EndsAloneWhatFailsAmongOthers) {
  const auto fail_on_x = [](const Batch& batch) {
    for (const TokenId token : batch.tokens) {
      if (token == 'x') throw Error(ErrorCode::device, "x");
    }
  };
  ScriptedModel guessing(few_letters, {.before_forward = fail_on_x, .drafter = erring(4)});
  ScriptedModel plain(few_letters);
  const auto bad = start(guessing, "x", tokens(50));
  const auto good = start(guessing, "begin", tokens(50));
  EXPECT_EQ(good->done.get_future().get().tokens,
            plain.model.generate("begin", tokens(50)).summary().tokens);
  EXPECT_THROW(bad->done.get_future().get(), Error);
}

TEST(Speculation, GoesOnWithoutADrafterThatFails) {
  class Failing : public Drafter {
    void draft(std::span<const DraftRequest>) override { throw Error(ErrorCode::device, "no"); }
    void forget(std::uint64_t) override {}
  };
  EXPECT_EQ(expect_same({}, tokens(50), [] { return std::make_unique<Failing>(); }), 0U);
}

}  // namespace
}  // namespace edgerunner::test
