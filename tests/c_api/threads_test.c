#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "cases.h"
#include "check.h"
#include "edgerunner/edgerunner.h"

enum { kThreads = 4, kTokens = 32 };

/* A thread tells what it found; the checks are the main thread's. */
struct run {
  edgerunner_model* model;
  uint64_t seed;
  int32_t tokens[kTokens];
  edgerunner_status status;
  char message[256];
};

static edgerunner_status generate(struct run* run) {
  edgerunner_generate_options options;
  edgerunner_generation* generation = NULL;
  edgerunner_summary summary;
  edgerunner_status status = edgerunner_generate_options_init(&options, sizeof(options));
  if (status != EDGERUNNER_OK) return status;
  options.max_tokens = kTokens;
  options.ignore_eos = true;
  options.temperature = 1;
  options.seed = run->seed;
  status = edgerunner_generate(run->model, "the", 3, &options, &generation);
  if (status != EDGERUNNER_OK) return status;
  status = edgerunner_generation_summary(generation, &summary, sizeof(summary));
  if (status == EDGERUNNER_OK) memcpy(run->tokens, summary.tokens, sizeof(run->tokens));
  edgerunner_generation_free(generation);
  return status;
}

static void* generate_in_thread(void* user) {
  struct run* run = user;
  run->status = generate(run);
  return NULL;
}

void runs_in_several_threads(const char* path) {
  struct run alone[kThreads];
  struct run together[kThreads];
  pthread_t threads[kThreads];
  int started = 0;
  int i;
  edgerunner_model* model = NULL;
  if (!CHECK_OK(edgerunner_model_load(path, NULL, &model))) return;
  memset(alone, 0, sizeof(alone));
  for (i = 0; i < kThreads; ++i) {
    alone[i].model = model;
    alone[i].seed = (uint64_t)i;
    together[i] = alone[i];
    CHECK_OK(generate(&alone[i]));
  }
  for (started = 0; started < kThreads; ++started) {
    if (pthread_create(&threads[started], NULL, generate_in_thread, &together[started]) != 0) break;
  }
  CHECK(started == kThreads);
  for (i = 0; i < started; ++i) {
    pthread_join(threads[i], NULL);
    CHECK(together[i].status == EDGERUNNER_OK);
    CHECK(memcmp(together[i].tokens, alone[i].tokens, sizeof(alone[i].tokens)) == 0);
  }
  CHECK(memcmp(alone[0].tokens, alone[1].tokens, sizeof(alone[0].tokens)) != 0);
  edgerunner_model_free(model);
}

static void* fail_in_thread(void* user) {
  struct run* run = user;
  edgerunner_model* model = NULL;
  char path[64];
  snprintf(run->message, sizeof(run->message), "%s", edgerunner_last_error());
  if (run->message[0] != '\0') return NULL; /* another thread's */
  snprintf(path, sizeof(path), "/no/such/model/%d", (int)run->seed);
  run->status = edgerunner_model_load(path, NULL, &model);
  snprintf(run->message, sizeof(run->message), "%s", edgerunner_last_error());
  return NULL;
}

void keeps_messages_by_thread(const char* path) {
  struct run runs[kThreads];
  pthread_t threads[kThreads];
  char wanted[64];
  int started = 0;
  int i;
  edgerunner_model* model = NULL;
  (void)path;
  memset(runs, 0, sizeof(runs));
  CHECK_FAILS(edgerunner_model_load("/no/such/model/of/main", NULL, &model), EDGERUNNER_IO, "main");
  for (started = 0; started < kThreads; ++started) {
    runs[started].seed = (uint64_t)started;
    if (pthread_create(&threads[started], NULL, fail_in_thread, &runs[started]) != 0) break;
  }
  CHECK(started == kThreads);
  for (i = 0; i < started; ++i) {
    pthread_join(threads[i], NULL);
    snprintf(wanted, sizeof(wanted), "/no/such/model/%d", i);
    CHECK(runs[i].status == EDGERUNNER_IO && strstr(runs[i].message, wanted) != NULL);
  }
  CHECK(strstr(edgerunner_last_error(), "main") != NULL);
}
