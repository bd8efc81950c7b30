#include <string.h>

#include "cases.h"
#include "check.h"
#include "edgerunner/edgerunner.h"

enum { kTokens = 12 };

static const char* const kModel = EDGERUNNER_LORA_DIR "/llama.gguf";

/* Generates greedily; the tokens go to `tokens`, [kTokens]. */
static void generate(edgerunner_model* model, const edgerunner_adapter_scale* adapters,
                     size_t count, int32_t* tokens) {
  const int32_t ids[] = {3, 1, 4, 1, 5, 9, 2, 6};
  edgerunner_generate_options options;
  edgerunner_generation* generation = NULL;
  edgerunner_summary summary;
  CHECK_OK(edgerunner_generate_options_init(&options, sizeof(options)));
  options.max_tokens = kTokens;
  options.ignore_eos = true;
  options.adapters = adapters;
  options.adapter_count = count;
  CHECK_OK(edgerunner_generate_from_ids(model, ids, 8, &options, &generation));
  CHECK_OK(edgerunner_generation_summary(generation, &summary, sizeof(summary)));
  if (CHECK(summary.generated_tokens == kTokens)) {
    memcpy(tokens, summary.tokens, kTokens * sizeof(*tokens));
  }
  edgerunner_generation_free(generation);
}

void applies_adapters(const char* path) {
  const int wrong = EDGERUNNER_INVALID_ARGUMENT;
  const int32_t id = 1;
  edgerunner_adapter_file files[2] = {{EDGERUNNER_LORA_DIR "/llama-a.gguf", 1.0F},
                                      {EDGERUNNER_LORA_DIR "/llama-b.gguf", 0.0F}};
  edgerunner_adapter_scale chosen[] = {{0, 1.0F}};
  int32_t plain[kTokens] = {0};
  int32_t loaded[kTokens] = {0};
  int32_t tokens[kTokens] = {0};
  edgerunner_model_options options;
  edgerunner_generate_options generating;
  edgerunner_model* model = NULL;
  edgerunner_generation* generation = NULL;
  (void)path;
  if (!CHECK_OK(edgerunner_model_load(kModel, NULL, &model))) return;
  generate(model, NULL, 0, plain);
  CHECK_OK(edgerunner_generate_options_init(&generating, sizeof(generating)));
  generating.adapters = chosen;
  generating.adapter_count = 1;
  CHECK_FAILS(edgerunner_generate_from_ids(model, &id, 1, &generating, &generation), wrong,
              "adapter with id 0");
  edgerunner_model_free(model);

  CHECK_OK(edgerunner_model_options_init(&options, sizeof(options)));
  options.adapters = files;
  options.adapter_count = 2;
  if (!CHECK_OK(edgerunner_model_load(kModel, &options, &model))) return;
  generate(model, NULL, 0, loaded);
  CHECK(memcmp(loaded, plain, sizeof(plain)) != 0);
  generate(model, chosen, 0, tokens);
  CHECK(memcmp(tokens, plain, sizeof(plain)) == 0);
  generate(model, chosen, 1, tokens);
  CHECK(memcmp(tokens, loaded, sizeof(plain)) == 0);
  edgerunner_model_free(model);

  files[1].path = kModel;
  CHECK_FAILS(edgerunner_model_load(kModel, &options, &model), EDGERUNNER_INVALID_FILE,
              "is no adapter");
  files[1].path = NULL;
  CHECK_FAILS(edgerunner_model_load(kModel, &options, &model), wrong, "options.adapters");
  options.adapters = NULL;
  CHECK_FAILS(edgerunner_model_load(kModel, &options, &model), wrong, "options.adapters");
}
