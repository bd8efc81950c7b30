#include <stdint.h>
#include <string.h>

#include "cases.h"
#include "check.h"
#include "edgerunner/edgerunner.h"

void tells_its_version(const char* path) {
  (void)path;
  CHECK(edgerunner_abi_version() == EDGERUNNER_ABI_VERSION);
  CHECK(strchr(edgerunner_version(), '.') != NULL);
  CHECK(strcmp(edgerunner_status_name(EDGERUNNER_OK), "ok") == 0);
  CHECK(strcmp(edgerunner_status_name(EDGERUNNER_IO), "io") == 0);
  CHECK(strcmp(edgerunner_status_name((edgerunner_status)99), "unknown") == 0);
}

void refuses_null(const char* path) {
  const int wrong = EDGERUNNER_INVALID_ARGUMENT;
  const char* text = NULL;
  const float* logits = NULL;
  int32_t id = 0;
  float value = 0;
  size_t count = 0;
  bool ready = false;
  edgerunner_model* model = NULL;
  edgerunner_generation* generation = NULL;
  edgerunner_session* session = NULL;
  edgerunner_model_info info;
  edgerunner_summary summary;

  CHECK_FAILS(edgerunner_model_load(NULL, NULL, &model), wrong, "path");
  CHECK_FAILS(edgerunner_model_load(path, NULL, NULL), wrong, "model");
  CHECK_FAILS(edgerunner_model_get_info(NULL, &info, sizeof(info)), wrong, "model");
  CHECK_FAILS(edgerunner_model_cancel_all(NULL), wrong, "model");
  CHECK_FAILS(edgerunner_model_options_init(NULL, sizeof(edgerunner_model_options)), wrong,
              "options");
  CHECK_FAILS(edgerunner_tokenize(NULL, "a", 1, true, false, &id, 1, &count), wrong, "model");
  CHECK_FAILS(edgerunner_detokenize(NULL, &id, 1, false, NULL, 0, &count), wrong, "model");
  CHECK_FAILS(edgerunner_generate(NULL, "a", 1, NULL, &generation), wrong, "model");
  CHECK_FAILS(edgerunner_generate_from_ids(NULL, &id, 1, NULL, &generation), wrong, "model");
  CHECK_FAILS(edgerunner_chat(NULL, "[]", NULL, NULL, &generation), wrong, "model");
  CHECK_FAILS(edgerunner_chat_render(NULL, "[]", NULL, NULL, 0, &count), wrong, "model");
  CHECK_FAILS(edgerunner_generation_next(NULL, &text, NULL), wrong, "generation");
  CHECK_FAILS(edgerunner_generation_wait(NULL, 0, &ready), wrong, "generation");
  CHECK_FAILS(edgerunner_generation_summary(NULL, &summary, sizeof(summary)), wrong, "generation");
  CHECK_FAILS(edgerunner_generation_tool_call(NULL, 0, &text, &text), wrong, "generation");
  CHECK_FAILS(edgerunner_session_new(NULL, &session), wrong, "model");
  CHECK_FAILS(edgerunner_session_logits(NULL, &id, 1, &logits, NULL), wrong, "session");
  CHECK_FAILS(edgerunner_session_next_token(NULL, &id, 1, NULL, &id), wrong, "session");
  CHECK_FAILS(edgerunner_embed(NULL, "a", 1, EDGERUNNER_POOLING_MEAN, &value, 1, &count), wrong,
              "model");
  CHECK(edgerunner_generation_tool_call_count(NULL) == 0);
  CHECK(!edgerunner_generation_in_reasoning(NULL));
  edgerunner_generation_cancel(NULL);
  edgerunner_generation_free(NULL);
  edgerunner_session_free(NULL);
  edgerunner_model_free(NULL);

  if (!CHECK_OK(edgerunner_model_load(path, NULL, &model))) return;
  CHECK_FAILS(edgerunner_model_get_info(model, NULL, sizeof(info)), wrong, "info");
  CHECK_FAILS(edgerunner_tokenize(model, NULL, 0, true, false, &id, 1, &count), wrong, "text");
  CHECK_FAILS(edgerunner_tokenize(model, "a", 1, true, false, &id, 1, NULL), wrong, "count");
  CHECK_FAILS(edgerunner_tokenize(model, "a", 1, true, false, NULL, 1, &count), wrong, "buffer");
  CHECK_FAILS(edgerunner_detokenize(model, NULL, 1, false, NULL, 0, &count), wrong, "ids");
  CHECK_FAILS(edgerunner_generate(model, NULL, 0, NULL, &generation), wrong, "prompt");
  CHECK_FAILS(edgerunner_generate(model, "a", 1, NULL, NULL), wrong, "generation");
  CHECK_FAILS(edgerunner_generate_from_ids(model, NULL, 3, NULL, &generation), wrong, "ids");
  CHECK_FAILS(edgerunner_chat(model, NULL, NULL, NULL, &generation), wrong, "messages");
  CHECK(generation == NULL);
  edgerunner_model_free(model);
}

void refuses_options_without_init(const char* path) {
  const int wrong = EDGERUNNER_INVALID_ARGUMENT;
  edgerunner_model* model = NULL;
  edgerunner_generation* generation = NULL;
  edgerunner_model_options options;
  edgerunner_generate_options generate;

  memset(&options, 0xA5, sizeof(options));
  CHECK_FAILS(edgerunner_model_load(path, &options, &model), wrong, "_init");
  CHECK_FAILS(edgerunner_model_options_init(&options, 1), wrong, "size");
  CHECK_FAILS(edgerunner_model_options_init(&options, sizeof(options) + 8), wrong, "newer");
  CHECK_OK(edgerunner_model_options_init(&options, sizeof(options)));
  CHECK(options.size == sizeof(options));
  options.backend = 17;
  CHECK_FAILS(edgerunner_model_load(path, &options, &model), wrong, "options.backend");
  options.backend = EDGERUNNER_BACKEND_CPU;
  options.precision = -1;
  CHECK_FAILS(edgerunner_model_load(path, &options, &model), wrong, "options.precision");
  options.precision = EDGERUNNER_PRECISION_FAST;
  options.kv = 4;
  CHECK_FAILS(edgerunner_model_load(path, &options, &model), wrong, "options.kv");

  /* A program of an earlier version, whose struct ended earlier: what it has not is the default. */
  CHECK_OK(edgerunner_model_options_init(&options, offsetof(edgerunner_model_options, context)));
  options.threads = 1;
  options.context = 0xA5A5A5A5U;
  if (!CHECK_OK(edgerunner_model_load(path, &options, &model))) return;

  memset(&generate, 0, sizeof(generate));
  CHECK_FAILS(edgerunner_generate(model, "a", 1, &generate, &generation), wrong, "_init");
  edgerunner_model_free(model);
}
