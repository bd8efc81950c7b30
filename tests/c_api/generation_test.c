#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "cases.h"
#include "check.h"
#include "edgerunner/edgerunner.h"

enum { kRoom = 4096 };

/* Reads a generation to its end and gives it back. */
static void read_all(edgerunner_generation* generation, char text[kRoom],
                     edgerunner_summary* summary) {
  const char* piece = NULL;
  size_t size = 0;
  size_t total = 0;
  while (CHECK_OK(edgerunner_generation_next(generation, &piece, &size)) && piece != NULL) {
    CHECK(size > 0 && strlen(piece) <= size);
    if (!CHECK(total + size < kRoom)) break;
    memcpy(text + total, piece, size);
    total += size;
  }
  text[total] = '\0';
  CHECK_OK(edgerunner_generation_next(generation, &piece, &size));
  CHECK(piece == NULL && size == 0);
  CHECK_OK(edgerunner_generation_summary(generation, summary, sizeof(*summary)));
  edgerunner_generation_free(generation);
}

static edgerunner_generate_options tokens(uint32_t count) {
  edgerunner_generate_options options;
  CHECK_OK(edgerunner_generate_options_init(&options, sizeof(options)));
  options.max_tokens = count;
  options.ignore_eos = true;
  return options;
}

void streams_whole_text(const char* path) {
  const edgerunner_generate_options options = tokens(24);
  char text[kRoom];
  char again[kRoom];
  int32_t ids[32];
  size_t count = 0;
  bool ready = false;
  edgerunner_model* model = NULL;
  edgerunner_generation* generation = NULL;
  edgerunner_summary summary;
  if (!CHECK_OK(edgerunner_model_load(path, NULL, &model))) return;
  CHECK_OK(edgerunner_generate(model, "the end", 7, &options, &generation));
  read_all(generation, text, &summary);
  CHECK(text[0] != '\0');
  CHECK(summary.finish == EDGERUNNER_FINISH_LENGTH && summary.generated_tokens == 24);
  CHECK(summary.prompt_tokens > 2 && summary.time_to_first_token > 0);

  CHECK_OK(edgerunner_tokenize(model, "the end", 7, true, true, ids, 32, &count));
  CHECK(count == summary.prompt_tokens);
  CHECK_OK(edgerunner_generate_from_ids(model, ids, count, &options, &generation));
  CHECK_OK(edgerunner_generation_wait(generation, 60000, &ready));
  CHECK(ready);
  read_all(generation, again, &summary);
  CHECK(strcmp(text, again) == 0);

  /* The summary alone, with all the tokens. */
  CHECK_OK(edgerunner_generate_from_ids(model, ids, count, &options, &generation));
  CHECK_OK(edgerunner_generation_summary(generation, &summary, sizeof(summary)));
  CHECK(summary.generated_tokens == 24);
  CHECK_OK(edgerunner_detokenize(model, summary.tokens, 24, false, NULL, 0, &count));
  CHECK(count > 0);
  edgerunner_generation_free(generation);
  edgerunner_model_free(model);
}

void chooses_by_options_and_seed(const char* path) {
  edgerunner_generate_options options = tokens(40);
  char text[kRoom];
  char again[kRoom];
  char other[kRoom];
  char stopped[kRoom];
  char stop[2] = "";
  const char* stops[1];
  edgerunner_logit_bias bias;
  int32_t stop_token = 0;
  edgerunner_model* model = NULL;
  edgerunner_generation* generation = NULL;
  edgerunner_summary summary;
  if (!CHECK_OK(edgerunner_model_load(path, NULL, &model))) return;
  options.temperature = 1;
  options.seed = 1;
  CHECK_OK(edgerunner_generate(model, "the", 3, &options, &generation));
  read_all(generation, text, &summary);
  CHECK_OK(edgerunner_generate(model, "the", 3, &options, &generation));
  read_all(generation, again, &summary);
  options.seed = 2;
  CHECK_OK(edgerunner_generate(model, "the", 3, &options, &generation));
  read_all(generation, other, &summary);
  CHECK(strcmp(text, again) == 0 && strcmp(text, other) != 0);

  /* The text ends before the first plain letter that it has. */
  options.seed = 1;
  stop[0] = text[strcspn(text, "abcdefghijklmnopqrstuvwxyz")];
  if (CHECK(stop[0] != '\0')) {
    stops[0] = stop;
    options.stop = stops;
    options.stop_count = 1;
    CHECK_OK(edgerunner_generate(model, "the", 3, &options, &generation));
    read_all(generation, stopped, &summary);
    CHECK(summary.finish == EDGERUNNER_FINISH_STOP);
    CHECK(strlen(stopped) == strcspn(text, stop) && strncmp(text, stopped, strlen(stopped)) == 0);
    options.stop_count = 0;
  }

  /* A token that no other can beat, and that ends the text. */
  bias.token = 100;
  bias.bias = 1e6F;
  options.logit_bias = &bias;
  options.logit_bias_count = 1;
  options.max_tokens = 3;
  CHECK_OK(edgerunner_generate(model, "the", 3, &options, &generation));
  CHECK_OK(edgerunner_generation_summary(generation, &summary, sizeof(summary)));
  CHECK(summary.generated_tokens == 3 && summary.tokens[0] == 100 && summary.tokens[2] == 100);
  edgerunner_generation_free(generation);
  stop_token = 100;
  options.stop_tokens = &stop_token;
  options.stop_token_count = 1;
  CHECK_OK(edgerunner_generate(model, "the", 3, &options, &generation));
  read_all(generation, stopped, &summary);
  CHECK(summary.generated_tokens == 0 && summary.finish == EDGERUNNER_FINISH_STOP);

  options = tokens(0);
  options.ignore_eos = false;
  options.json_schema = "{\"enum\": [\"he\", \"the\"]}";
  CHECK_OK(edgerunner_generate(model, "the", 3, &options, &generation));
  read_all(generation, text, &summary);
  CHECK(strcmp(text, "\"he\"") == 0 || strcmp(text, "\"the\"") == 0);
  edgerunner_model_free(model);
}

void refuses_wrong_options_and_ids(const char* path) {
  const int wrong = EDGERUNNER_INVALID_ARGUMENT;
  const char* stops[] = {NULL};
  int32_t ids[] = {1, 5, 100000};
  int32_t many[1100];
  size_t i;
  edgerunner_generate_options options = tokens(4);
  edgerunner_model* model = NULL;
  edgerunner_generation* generation = NULL;
  if (!CHECK_OK(edgerunner_model_load(path, NULL, &model))) return;
  CHECK_FAILS(edgerunner_generate_from_ids(model, ids, 3, &options, &generation), wrong, "100000");
  CHECK_FAILS(edgerunner_generate_from_ids(model, ids, 0, &options, &generation), wrong, "prompt");
  options.top_p = 1.5F;
  CHECK_FAILS(edgerunner_generate(model, "a", 1, &options, &generation), wrong, "top_p");
  options = tokens(4);
  options.temperature = -1;
  CHECK_FAILS(edgerunner_generate(model, "a", 1, &options, &generation), wrong, "temperature");
  options = tokens(4);
  options.stop_count = 1;
  CHECK_FAILS(edgerunner_generate(model, "a", 1, &options, &generation), wrong, "options.stop");
  options.stop = stops;
  CHECK_FAILS(edgerunner_generate(model, "a", 1, &options, &generation), wrong, "options.stop");
  options = tokens(4);
  options.grammar = "root ::= nothing";
  CHECK_FAILS(edgerunner_generate(model, "a", 1, &options, &generation), wrong, "nothing");
  for (i = 0; i < sizeof(many) / sizeof(many[0]); ++i) many[i] = 5;
  CHECK_FAILS(edgerunner_generate_from_ids(model, many, 1100, NULL, &generation),
              EDGERUNNER_CONTEXT_FULL, "1100");
  CHECK(generation == NULL);
  edgerunner_model_free(model);
}

static void* cancel(void* generation) {
  edgerunner_generation_cancel(generation);
  return NULL;
}

void is_cancelled_from_a_thread(const char* path) {
  edgerunner_generate_options options = tokens(0);
  const char* piece = NULL;
  edgerunner_model* model = NULL;
  edgerunner_generation* generation = NULL;
  edgerunner_summary summary;
  pthread_t thread;
  if (!CHECK_OK(edgerunner_model_load(path, NULL, &model))) return;
  options.circular_context = true; /* it would never end by itself */
  CHECK_OK(edgerunner_generate(model, "the", 3, &options, &generation));
  CHECK_OK(edgerunner_generation_next(generation, &piece, NULL));
  CHECK(piece != NULL);
  if (!CHECK(pthread_create(&thread, NULL, cancel, generation) == 0)) return;
  while (CHECK_OK(edgerunner_generation_next(generation, &piece, NULL)) && piece != NULL) {
  }
  pthread_join(thread, NULL);
  CHECK_OK(edgerunner_generation_summary(generation, &summary, sizeof(summary)));
  CHECK(summary.finish == EDGERUNNER_FINISH_CANCELLED && summary.generated_tokens > 0);
  edgerunner_generation_free(generation);
  edgerunner_model_free(model);
}

void outlives_its_model(const char* path) {
  edgerunner_generate_options options = tokens(0);
  const int32_t id = 5;
  const float* logits = NULL;
  edgerunner_model* model = NULL;
  edgerunner_generation* generation = NULL;
  edgerunner_session* session = NULL;
  edgerunner_summary summary;
  if (!CHECK_OK(edgerunner_model_load(path, NULL, &model))) return;
  options.circular_context = true;
  CHECK_OK(edgerunner_generate(model, "the", 3, &options, &generation));
  CHECK_OK(edgerunner_session_new(model, &session));
  edgerunner_model_free(model);
  CHECK_OK(edgerunner_generation_summary(generation, &summary, sizeof(summary)));
  CHECK(summary.finish == EDGERUNNER_FINISH_CANCELLED);
  CHECK_FAILS(edgerunner_session_logits(session, &id, 1, &logits, NULL), EDGERUNNER_CANCELLED, "");
  edgerunner_session_free(session);
  edgerunner_generation_free(generation);
}

void answers_a_conversation(const char* path) {
  const char messages[] = "[{\"role\": \"user\", \"content\": \"he\"}]";
  const char prompt[] = "user: he\nassistant: ";
  const int wrong = EDGERUNNER_INVALID_ARGUMENT;
  const edgerunner_generate_options options = tokens(16);
  char text[kRoom];
  char again[kRoom];
  size_t size = 0;
  const char* name = NULL;
  edgerunner_chat_options chat;
  edgerunner_model* model = NULL;
  edgerunner_generation* generation = NULL;
  edgerunner_summary summary;
  if (!CHECK_OK(edgerunner_model_load(path, NULL, &model))) return;
  CHECK_OK(edgerunner_chat_render(model, messages, NULL, text, kRoom, &size));
  CHECK(strcmp(text, prompt) == 0 && size == strlen(prompt));
  CHECK_OK(edgerunner_generate(model, prompt, strlen(prompt), &options, &generation));
  read_all(generation, text, &summary);
  CHECK_OK(edgerunner_chat(model, messages, &options, NULL, &generation));
  CHECK(!edgerunner_generation_in_reasoning(generation));
  CHECK(edgerunner_generation_tool_call_count(generation) == 0);
  CHECK_FAILS(edgerunner_generation_tool_call(generation, 0, &name, &name), wrong, "index");
  read_all(generation, again, &summary);
  CHECK(strcmp(text, again) == 0 && summary.reused_tokens > 0);

  CHECK_FAILS(edgerunner_chat(model, "[", NULL, NULL, &generation), wrong, "messages");
  CHECK_FAILS(edgerunner_chat(model, "[{\"content\": \"he\"}]", NULL, NULL, &generation), wrong,
              "messages[0]");
  CHECK_OK(edgerunner_chat_options_init(&chat, sizeof(chat)));
  chat.tools = "{}";
  CHECK_FAILS(edgerunner_chat(model, messages, NULL, &chat, &generation), wrong, "tools");
  edgerunner_model_free(model);
}

void gives_logits(const char* path) {
  int32_t ids[4] = {1, 260, 270, 0};
  int32_t token = -1;
  const float* logits = NULL;
  size_t count = 0;
  size_t i;
  size_t best = 0;
  const edgerunner_generate_options options = tokens(1);
  edgerunner_model* model = NULL;
  edgerunner_session* session = NULL;
  edgerunner_generation* generation = NULL;
  edgerunner_summary summary;
  if (!CHECK_OK(edgerunner_model_load(path, NULL, &model))) return;
  CHECK_OK(edgerunner_session_new(model, &session));
  CHECK_OK(edgerunner_session_logits(session, ids, 3, &logits, &count));
  CHECK(count > 300);
  for (i = 1; i < count; ++i) {
    if (logits[i] > logits[best]) best = i;
  }
  CHECK_OK(edgerunner_session_next_token(session, ids, 3, NULL, &token));
  CHECK((size_t)token == best);
  CHECK_OK(edgerunner_generate_from_ids(model, ids, 3, &options, &generation));
  CHECK_OK(edgerunner_generation_summary(generation, &summary, sizeof(summary)));
  CHECK(summary.tokens[0] == token);
  edgerunner_generation_free(generation);
  ids[1] = -3;
  CHECK_FAILS(edgerunner_session_logits(session, ids, 3, &logits, &count),
              EDGERUNNER_INVALID_ARGUMENT, "-3");
  CHECK_FAILS(edgerunner_session_logits(session, ids, 0, &logits, &count),
              EDGERUNNER_INVALID_ARGUMENT, "no tokens");
  edgerunner_session_free(session);
  edgerunner_model_free(model);
}

void gives_embeddings(const char* path) {
  const int wrong = EDGERUNNER_INVALID_ARGUMENT;
  float mean[64];
  float last[64];
  float by_ids[64];
  int32_t ids[32];
  size_t count = 0;
  size_t size = 0;
  double squares = 0;
  size_t i;
  edgerunner_model* model = NULL;
  if (!CHECK_OK(edgerunner_model_load(path, NULL, &model))) return;
  CHECK_OK(edgerunner_embed(model, "the end", 7, EDGERUNNER_POOLING_MEAN, mean, 64, &size));
  CHECK_OK(edgerunner_embed(model, "the end", 7, EDGERUNNER_POOLING_LAST, last, 64, &size));
  CHECK_OK(edgerunner_tokenize(model, "the end", 7, true, true, ids, 32, &count));
  CHECK_OK(edgerunner_embed_ids(model, ids, count, EDGERUNNER_POOLING_MEAN, by_ids, 64, &size));
  for (i = 0; i < 64; ++i) squares += (double)mean[i] * mean[i];
  CHECK(fabs(squares - 1) < 1e-5);
  CHECK(memcmp(mean, by_ids, sizeof(mean)) == 0);
  CHECK(memcmp(mean, last, sizeof(mean)) != 0);
  CHECK_FAILS(edgerunner_embed(model, "a", 1, (edgerunner_pooling)7, mean, 64, &size), wrong,
              "pooling");
  CHECK_FAILS(edgerunner_embed_ids(model, ids, 0, EDGERUNNER_POOLING_MEAN, mean, 64, &size), wrong,
              "no tokens");
  edgerunner_model_free(model);
}
