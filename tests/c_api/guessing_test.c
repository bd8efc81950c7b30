#include <string.h>

#include "cases.h"
#include "check.h"
#include "edgerunner/edgerunner.h"

enum { kTokens = 60 };

/* What a generation wants of the model's guesses. */
struct wish {
  int32_t guessing;
  uint32_t draft_tokens;
  bool repeats; /* one token all the time, so that there is something to guess */
};

/* Generates greedily; the tokens go to `tokens`, [kTokens]. Returns how many were guessed. */
static uint32_t generate(edgerunner_model* model, struct wish wish, int32_t* tokens) {
  const edgerunner_logit_bias bias = {7, 100.0F};
  edgerunner_generate_options options;
  edgerunner_generation* generation = NULL;
  edgerunner_summary summary;
  memset(&summary, 0, sizeof(summary));
  CHECK_OK(edgerunner_generate_options_init(&options, sizeof(options)));
  CHECK(options.guessing == EDGERUNNER_GUESSING_AS_LOADED && options.draft_tokens == 0);
  options.max_tokens = kTokens;
  options.ignore_eos = true;
  options.guessing = wish.guessing;
  options.draft_tokens = wish.draft_tokens;
  options.logit_bias = &bias;
  options.logit_bias_count = wish.repeats ? 1 : 0;
  if (!CHECK_OK(edgerunner_generate(model, "the end", 7, &options, &generation))) return 0;
  CHECK_OK(edgerunner_generation_summary(generation, &summary, sizeof(summary)));
  if (CHECK(summary.generated_tokens == kTokens)) {
    memcpy(tokens, summary.tokens, kTokens * sizeof(*tokens));
  }
  CHECK(summary.accepted_tokens <= summary.drafted_tokens);
  edgerunner_generation_free(generation);
  return summary.drafted_tokens;
}

/* Loads the model to guess so, and checks its room for guesses. */
static edgerunner_model* load(const char* path, int32_t guessing, const char* draft,
                              uint32_t wanted_room) {
  edgerunner_model_options options;
  edgerunner_model* model = NULL;
  edgerunner_model_info info;
  CHECK_OK(edgerunner_model_options_init(&options, sizeof(options)));
  options.guessing = guessing;
  options.draft_model = draft;
  options.draft_tokens = 8;
  options.draft_confidence = 0;
  if (!CHECK_OK(edgerunner_model_load(path, &options, &model))) return NULL;
  CHECK_OK(edgerunner_model_get_info(model, &info, sizeof(info)));
  CHECK(info.draft_tokens == wanted_room);
  return model;
}

static void keeps_the_text(const char* path, int32_t guessing, const char* draft) {
  const struct wish as_loaded = {EDGERUNNER_GUESSING_AS_LOADED, 0, false};
  const struct wish off = {EDGERUNNER_GUESSING_OFF, 0, false};
  const struct wish lookup = {EDGERUNNER_GUESSING_LOOKUP, 2, false};
  const struct wish repeating = {EDGERUNNER_GUESSING_AS_LOADED, 0, true};
  int32_t plain[kTokens] = {0};
  int32_t tokens[kTokens] = {1};
  edgerunner_model* model = load(path, guessing, draft, 8);
  if (model == NULL) return;
  CHECK(generate(model, off, plain) == 0);
  generate(model, lookup, tokens);
  CHECK(memcmp(tokens, plain, sizeof(plain)) == 0);
  generate(model, as_loaded, tokens);
  CHECK(memcmp(tokens, plain, sizeof(plain)) == 0);
  CHECK((generate(model, repeating, tokens) > 0) == (guessing != EDGERUNNER_GUESSING_ON_REQUEST));
  edgerunner_model_free(model);
}

static void refuses_wrong_wishes(const char* path) {
  const int wrong = EDGERUNNER_INVALID_ARGUMENT;
  edgerunner_model_options options;
  edgerunner_generate_options generating;
  edgerunner_model* model = NULL;
  edgerunner_generation* generation = NULL;
  CHECK_OK(edgerunner_model_options_init(&options, sizeof(options)));
  options.guessing = EDGERUNNER_GUESSING_AS_LOADED;
  CHECK_FAILS(edgerunner_model_load(path, &options, &model), wrong, "options.guessing");
  options.guessing = EDGERUNNER_GUESSING_LOOKUP;
  options.draft_tokens = 65;
  CHECK_FAILS(edgerunner_model_load(path, &options, &model), wrong, "draft_tokens");
  options.draft_tokens = 16;
  options.draft_confidence = 1.5;
  CHECK_FAILS(edgerunner_model_load(path, &options, &model), wrong, "draft_confidence");
  options.draft_confidence = 0.2;
  options.draft_model = path;
  CHECK_FAILS(edgerunner_model_load(path, &options, &model), wrong, "draft");

  model = load(path, EDGERUNNER_GUESSING_OFF, NULL, 0);
  if (model == NULL) return;
  CHECK_OK(edgerunner_generate_options_init(&generating, sizeof(generating)));
  generating.guessing = EDGERUNNER_GUESSING_ON_REQUEST;
  CHECK_FAILS(edgerunner_generate(model, "a", 1, &generating, &generation), wrong,
              "options.guessing");
  generating.guessing = EDGERUNNER_GUESSING_LOOKUP;
  CHECK_FAILS(edgerunner_generate(model, "a", 1, &generating, &generation), wrong, "guess");
  edgerunner_model_free(model);
}

void guesses_ahead(const char* path) {
  keeps_the_text(path, EDGERUNNER_GUESSING_LOOKUP, NULL);
  keeps_the_text(path, EDGERUNNER_GUESSING_ON_REQUEST, NULL);
  keeps_the_text(path, EDGERUNNER_GUESSING_OFF, path);
  refuses_wrong_wishes(path);
}
