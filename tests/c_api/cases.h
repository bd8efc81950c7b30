#pragma once

/* A case is given the path of the tiny model. */
#define CASES(CASE)                     \
  CASE(tells_its_version)               \
  CASE(refuses_null)                    \
  CASE(refuses_options_without_init)    \
  CASE(names_what_is_wrong_with_a_file) \
  CASE(stops_loading_where_asked)       \
  CASE(tells_what_a_model_is)           \
  CASE(turns_text_into_ids_and_back)    \
  CASE(refuses_buffers_that_are_small)  \
  CASE(streams_whole_text)              \
  CASE(chooses_by_options_and_seed)     \
  CASE(refuses_wrong_options_and_ids)   \
  CASE(is_cancelled_from_a_thread)      \
  CASE(outlives_its_model)              \
  CASE(answers_a_conversation)          \
  CASE(gives_logits)                    \
  CASE(gives_embeddings)                \
  CASE(applies_adapters)                \
  CASE(guesses_ahead)                   \
  CASE(runs_in_several_threads)         \
  CASE(keeps_messages_by_thread)

#define DECLARE_CASE(name) void name(const char* path);
CASES(DECLARE_CASE)
#undef DECLARE_CASE
