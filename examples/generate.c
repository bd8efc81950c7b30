/* Streams what a model writes after a prompt, from C:  generate MODEL.gguf "Once upon a time" */
#include <edgerunner/edgerunner.h>
#include <stdio.h>
#include <string.h>

static int fail(void) {
  fprintf(stderr, "%s\n", edgerunner_last_error());
  return 1;
}

int main(int argc, char** argv) {
  edgerunner_model* model = NULL;
  edgerunner_generation* generation = NULL;
  edgerunner_generate_options options;
  edgerunner_summary summary;
  const char* piece = NULL;
  if (argc != 3) {
    fprintf(stderr, "usage: generate MODEL.gguf PROMPT\n");
    return 2;
  }
  if (edgerunner_model_load(argv[1], NULL, &model) != EDGERUNNER_OK) return fail();

  edgerunner_generate_options_init(&options, sizeof(options));
  options.max_tokens = 64;
  options.temperature = 0.7F;
  options.top_p = 0.9F;
  if (edgerunner_generate(model, argv[2], strlen(argv[2]), &options, &generation) !=
      EDGERUNNER_OK) {
    return fail();
  }
  do {
    if (edgerunner_generation_next(generation, &piece, NULL) != EDGERUNNER_OK) return fail();
    if (piece != NULL) fputs(piece, stdout);
    fflush(stdout);
  } while (piece != NULL);

  if (edgerunner_generation_summary(generation, &summary, sizeof(summary)) != EDGERUNNER_OK) {
    return fail();
  }
  printf("\n[%u tokens, %.1f a second]\n", summary.generated_tokens, summary.decode_tps);
  edgerunner_generation_free(generation);
  edgerunner_model_free(model);
  return 0;
}
