#include <stdio.h>
#include <string.h>

#include "cases.h"
#include "check.h"
#include "edgerunner/edgerunner.h"

void names_what_is_wrong_with_a_file(const char* path) {
  edgerunner_model* model = NULL;
  (void)path;
  CHECK_FAILS(edgerunner_model_load("/no/such/model.gguf", NULL, &model), EDGERUNNER_IO,
              "/no/such/model.gguf");
  CHECK_FAILS(edgerunner_model_load(EDGERUNNER_LORA_DIR "/llama.json", NULL, &model),
              EDGERUNNER_INVALID_FILE, "llama.json");
  CHECK(model == NULL);
}

struct progress {
  int calls;
  double last;
  double stop_at;
};

static bool on_progress(double fraction, void* user) {
  struct progress* progress = user;
  ++progress->calls;
  CHECK(fraction >= progress->last && fraction <= 1);
  progress->last = fraction;
  return fraction < progress->stop_at;
}

void stops_loading_where_asked(const char* path) {
  struct progress progress = {0, 0, 2};
  edgerunner_model* model = NULL;
  edgerunner_model_options options;
  CHECK_OK(edgerunner_model_options_init(&options, sizeof(options)));
  options.progress = on_progress;
  options.progress_user = &progress;
  CHECK_OK(edgerunner_model_load(path, &options, &model));
  CHECK(progress.calls >= 2 && progress.last == 1);
  edgerunner_model_free(model);

  model = NULL;
  progress.last = 0;
  progress.stop_at = 0.3;
  CHECK_FAILS(edgerunner_model_load(path, &options, &model), EDGERUNNER_CANCELLED, "progress");
  CHECK(model == NULL && progress.last < 1);
}

void tells_what_a_model_is(const char* path) {
  edgerunner_model* model = NULL;
  edgerunner_model_options options;
  edgerunner_model_info info;
  uint64_t first_word;
  CHECK_OK(edgerunner_model_options_init(&options, sizeof(options)));
  options.precision = EDGERUNNER_PRECISION_EXACT;
  options.threads = 2;
  options.context = 128;
  if (!CHECK_OK(edgerunner_model_load(path, &options, &model))) return;
  CHECK_OK(edgerunner_model_get_info(model, &info, sizeof(info)));
  CHECK(strcmp(info.architecture, "llama") == 0);
  CHECK(strcmp(info.name, "tiny") == 0);
  CHECK(strcmp(info.backend, "cpu") == 0);
  CHECK(strstr(info.chat_template, "messages") != NULL);
  CHECK(info.context == 128 && info.trained_context == 1024 && info.threads == 2);
  CHECK(info.embedding_size == 64 && info.bos == 1 && info.eos == 2);
  CHECK(info.vocab_size > 300 && info.parameters > 90000 && info.file_bytes > info.parameters);

  /* An earlier version's struct, which ends after the first member. */
  memset(&info, 0xA5, sizeof(info));
  memcpy(&first_word, (const char*)&info + sizeof(info.architecture), sizeof(first_word));
  CHECK_OK(edgerunner_model_get_info(model, &info, sizeof(info.architecture)));
  CHECK(strcmp(info.architecture, "llama") == 0);
  CHECK(memcmp(&first_word, (const char*)&info + sizeof(info.architecture), sizeof(first_word)) ==
        0);
  edgerunner_model_free(model);
}

void turns_text_into_ids_and_back(const char* path) {
  const char text[] = "the end";
  int32_t ids[32];
  char back[32];
  size_t count = 0;
  size_t size = 0;
  size_t special = 0;
  edgerunner_model* model = NULL;
  if (!CHECK_OK(edgerunner_model_load(path, NULL, &model))) return;
  CHECK_OK(edgerunner_tokenize(model, text, strlen(text), false, false, ids, 32, &count));
  CHECK(count > 1 && count < 32);
  CHECK_OK(edgerunner_detokenize(model, ids, count, false, back, sizeof(back), &size));
  CHECK(size == strlen(text) && strcmp(back, text) == 0);
  CHECK_OK(edgerunner_tokenize(model, text, strlen(text), true, false, ids, 32, &special));
  CHECK(special == count + 1 && ids[0] == 1);
  CHECK_OK(edgerunner_tokenize(model, "</s>", 4, false, true, ids, 32, &count));
  CHECK(count == 1 && ids[0] == 2);
  CHECK_OK(edgerunner_tokenize(model, "</s>", 4, false, false, ids, 32, &count));
  CHECK(count > 1);
  CHECK_OK(edgerunner_detokenize(model, NULL, 0, false, back, sizeof(back), &size));
  CHECK(size == 0 && back[0] == '\0');
  ids[0] = -1;
  CHECK_FAILS(edgerunner_detokenize(model, ids, 1, false, back, sizeof(back), &size),
              EDGERUNNER_INVALID_ARGUMENT, "-1");
  ids[0] = 1 << 30;
  CHECK_FAILS(edgerunner_detokenize(model, ids, 1, false, back, sizeof(back), &size),
              EDGERUNNER_INVALID_ARGUMENT, "1073741824");
  edgerunner_model_free(model);
}

void refuses_buffers_that_are_small(const char* path) {
  const int32_t untouched = -77;
  int32_t ids[32];
  char text[8] = "before";
  float embedding[64] = {5};
  size_t count = 0;
  size_t again = 0;
  size_t size = 0;
  edgerunner_model* model = NULL;
  if (!CHECK_OK(edgerunner_model_load(path, NULL, &model))) return;
  CHECK_OK(edgerunner_tokenize(model, "the end", 7, false, false, NULL, 0, &count));
  CHECK(count > 1 && count < 32);
  ids[0] = untouched;
  CHECK_FAILS(edgerunner_tokenize(model, "the end", 7, false, false, ids, count - 1, &again),
              EDGERUNNER_BUFFER_TOO_SMALL, "needed");
  CHECK(again == count && ids[0] == untouched);
  CHECK_OK(edgerunner_tokenize(model, "the end", 7, false, false, ids, count, &again));

  CHECK_OK(edgerunner_detokenize(model, ids, count, false, NULL, 0, &size));
  CHECK(size == 7);
  CHECK_FAILS(edgerunner_detokenize(model, ids, count, false, text, size, &size),
              EDGERUNNER_BUFFER_TOO_SMALL, "8 are needed");
  CHECK(strcmp(text, "before") == 0);
  CHECK_OK(edgerunner_detokenize(model, ids, count, false, text, size + 1, &size));
  CHECK(strcmp(text, "the end") == 0);

  CHECK_OK(edgerunner_embed(model, "a", 1, EDGERUNNER_POOLING_MEAN, NULL, 0, &size));
  CHECK(size == 64);
  CHECK_FAILS(edgerunner_embed(model, "a", 1, EDGERUNNER_POOLING_MEAN, embedding, 63, &size),
              EDGERUNNER_BUFFER_TOO_SMALL, "64 are needed");
  CHECK(embedding[0] == 5);
  edgerunner_model_free(model);
}
