#pragma once

/* EdgeRunner's C interface, in C99: load a model from a GGUF file, and generate, chat, embed.
 *
 *   edgerunner_model* model;
 *   if (edgerunner_model_load("model.gguf", NULL, &model) != EDGERUNNER_OK) {
 *     fprintf(stderr, "%s\n", edgerunner_last_error());
 *   }
 *
 * Handles are opaque; each comes from one function and goes back by its _free, which takes NULL.
 * Functions that can fail return an edgerunner_status, and set their results only where that is
 * EDGERUNNER_OK. NULL for a handle or a result is EDGERUNNER_INVALID_ARGUMENT; a handle that was
 * freed is undefined behaviour. Nothing is thrown or printed.
 *
 * Any thread may use a model, also while others do: what runs at the same time is computed
 * together, each as if it were alone. A generation and a session are for one thread at a time,
 * except for edgerunner_generation_cancel. A handle must not be freed while another thread is in a
 * call on it.
 *
 * Options are structs that begin with their size: let their _init fill in the size and the
 * defaults, then set what should differ. Later versions add members at the end; a program keeps
 * working with a later library of the same ABI version. Strings are UTF-8; what has a size may hold
 * NUL bytes. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define EDGERUNNER_API __attribute__((visibility("default")))
#else
#define EDGERUNNER_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface, as the header that a program was compiled with has it and as the
 * library does. It changes where a program would have to be compiled again. */
#define EDGERUNNER_ABI_VERSION 1
EDGERUNNER_API uint32_t edgerunner_abi_version(void);

/* The version of the library, as "0.1.0". */
EDGERUNNER_API const char* edgerunner_version(void);

/* Errors. */

/* 1 to 8 are edgerunner::ErrorCode plus one. */
typedef enum edgerunner_status {
  EDGERUNNER_OK = 0,
  EDGERUNNER_INVALID_FILE = 1,     /* damaged, hostile or not what it claims to be */
  EDGERUNNER_UNSUPPORTED = 2,      /* understood, but EdgeRunner can't run it */
  EDGERUNNER_OUT_OF_MEMORY = 3,    /* would not fit, or an allocation failed */
  EDGERUNNER_INVALID_ARGUMENT = 4, /* the caller's value is out of range */
  EDGERUNNER_CONTEXT_FULL = 5,     /* the sequence is longer than the context */
  EDGERUNNER_CANCELLED = 6,        /* stopped by request */
  EDGERUNNER_DEVICE = 7,           /* a GPU failed, or logits were not finite */
  EDGERUNNER_IO = 8,               /* the operating system refused a file operation */
  EDGERUNNER_BUFFER_TOO_SMALL = 9, /* nothing was written but the size that is needed */
  EDGERUNNER_INTERNAL = 10         /* a bug in EdgeRunner */
} edgerunner_status;

/* "ok", "invalid_file", ...; "unknown" for what is none. */
EDGERUNNER_API const char* edgerunner_status_name(edgerunner_status status);

/* What went wrong in the last call of this thread that did not return EDGERUNNER_OK: one sentence
 * that names the file, tensor, key or option and says what to do. Empty where there was none; valid
 * until this thread's next failure. */
EDGERUNNER_API const char* edgerunner_last_error(void);

/* Models. */

typedef struct edgerunner_model edgerunner_model;

typedef enum edgerunner_backend {
  EDGERUNNER_BACKEND_CPU = 0,
  EDGERUNNER_BACKEND_CUDA = 1,
  EDGERUNNER_BACKEND_REFERENCE = 2 /* double precision, plain and slow */
} edgerunner_backend;

typedef enum edgerunner_precision {
  EDGERUNNER_PRECISION_FAST = 0, /* activations of 8 bits, or bf16 */
  EDGERUNNER_PRECISION_EXACT = 1 /* f32 throughout */
} edgerunner_precision;

/* Element type of the KV cache. */
typedef enum edgerunner_kv {
  EDGERUNNER_KV_DEFAULT = 0, /* f16 where the precision is fast, f32 where it is exact */
  EDGERUNNER_KV_F16 = 1,
  EDGERUNNER_KV_F32 = 2,
  EDGERUNNER_KV_Q8 = 3
} edgerunner_kv;

/* How the coming tokens of a text are guessed ahead and checked together. It changes times alone:
 * the text stays the same. Nothing is guessed on EDGERUNNER_BACKEND_CUDA. */
typedef enum edgerunner_guessing {
  EDGERUNNER_GUESSING_OFF = 0,
  EDGERUNNER_GUESSING_LOOKUP = 1,     /* from the text itself */
  EDGERUNNER_GUESSING_ON_REQUEST = 2, /* of a model: where a generation asks for it */
  EDGERUNNER_GUESSING_AS_LOADED = 3   /* of a generation: as the model was loaded to */
} edgerunner_guessing;

/* Called while a model loads, on the thread that loads it, with a fraction from 0 to 1. Where it
 * returns false, loading ends with EDGERUNNER_CANCELLED. */
typedef bool (*edgerunner_progress)(double fraction, void* user);

/* A LoRA adapter to load with a model, and its scale where a generation chooses none: 1 as it was
 * trained. */
typedef struct edgerunner_adapter_file {
  const char* path;
  float scale;
} edgerunner_adapter_file;

typedef struct edgerunner_model_options {
  size_t size;
  int32_t backend;        /* edgerunner_backend */
  int32_t precision;      /* edgerunner_precision */
  int32_t kv;             /* edgerunner_kv */
  int32_t threads;        /* 0: the cores that the process may use */
  uint32_t context;       /* most tokens of one sequence; 0: as the model and the memory allow */
  uint32_t prefill_chunk; /* most prompt tokens of one forward pass; 0: as the backend likes */
  uint32_t max_sequences; /* that run at once; more wait their turn */
  uint32_t cache_tokens;  /* of the KV cache, at least one context; 0: as is useful */
  uint64_t memory_limit;  /* bytes; 0: what the system has available */
  edgerunner_progress progress;
  void* progress_user;
  const edgerunner_adapter_file* adapters; /* LoRA adapters, numbered from 0 */
  size_t adapter_count;
  int32_t guessing;        /* edgerunner_guessing; EDGERUNNER_GUESSING_OFF by default */
  uint32_t draft_tokens;   /* most guessed ahead, from 1 to 64 */
  const char* draft_model; /* a smaller model that guesses, with guessing off; NULL: none */
  double draft_confidence; /* it stops where its guesses are less likely right; 0: never */
} edgerunner_model_options;

/* `size` is sizeof(edgerunner_model_options). */
EDGERUNNER_API edgerunner_status edgerunner_model_options_init(edgerunner_model_options* options,
                                                               size_t size);

/* Loads a GGUF file. `options` may be NULL: the defaults. */
EDGERUNNER_API edgerunner_status edgerunner_model_load(const char* path,
                                                       const edgerunner_model_options* options,
                                                       edgerunner_model** model);

/* Generations and sessions of the model may be freed later: they have ended, with
 * EDGERUNNER_CANCELLED or finish reason EDGERUNNER_FINISH_CANCELLED. */
EDGERUNNER_API void edgerunner_model_free(edgerunner_model* model);

/* What a model is. Strings live as long as the model; none is NULL. */
typedef struct edgerunner_model_info {
  const char* architecture;
  const char* name;
  const char* chat_template; /* its Jinja source; empty where the file has none */
  const char* backend;
  const char* isa; /* the instruction set of its kernels */
  uint64_t parameters;
  uint64_t file_bytes;
  uint64_t weights_bytes;
  uint64_t cache_bytes;
  uint64_t scratch_bytes;
  uint32_t vocab_size;
  uint32_t embedding_size;
  uint32_t trained_context;
  uint32_t context; /* of one sequence, as loaded */
  int32_t threads;
  int32_t
      bos; /* ids of the beginning and end of a text; -1: none, as where there is no tokenizer */
  int32_t eos;
  uint32_t draft_tokens; /* most guessed ahead; 0: there is no room for guesses */
} edgerunner_model_info;

/* `size` is sizeof(edgerunner_model_info). */
EDGERUNNER_API edgerunner_status edgerunner_model_get_info(edgerunner_model* model,
                                                           edgerunner_model_info* info,
                                                           size_t size);

/* Ends all that runs or waits on the model. From any thread. */
EDGERUNNER_API edgerunner_status edgerunner_model_cancel_all(edgerunner_model* model);

/* Text and ids. */

/* Results go to a buffer of the caller's. `count` (or `size`) is set to what is needed where the
 * call succeeds, where the buffer is NULL with capacity 0 (which only asks, and succeeds), and
 * where it is too small (EDGERUNNER_BUFFER_TOO_SMALL; nothing else is written then). */

/* add_special: BOS and EOS as the model asks for them. parse_special: control tokens that are
 * written in the text count as such; else they are plain text. */
EDGERUNNER_API edgerunner_status edgerunner_tokenize(edgerunner_model* model, const char* text,
                                                     size_t text_size, bool add_special,
                                                     bool parse_special, int32_t* ids,
                                                     size_t capacity, size_t* count);

/* The bytes of a sequence (not UTF-8 where the ids end within a character), with a NUL after them
 * that needs room and that `size` does not count. special: control tokens are spelled out. */
EDGERUNNER_API edgerunner_status edgerunner_detokenize(edgerunner_model* model, const int32_t* ids,
                                                       size_t count, bool special, char* text,
                                                       size_t capacity, size_t* size);

/* Generation. */

typedef struct edgerunner_logit_bias {
  int32_t token;
  float bias; /* added to its logit; -INFINITY bans it */
} edgerunner_logit_bias;

typedef struct edgerunner_adapter_scale {
  uint32_t id; /* its place among edgerunner_model_options.adapters */
  float scale;
} edgerunner_adapter_scale;

/* How tokens are chosen, and when a generation ends. The defaults: greedy, until the model ends. */
typedef struct edgerunner_generate_options {
  size_t size;
  uint32_t max_tokens;     /* 0: as many as the model and the context allow */
  float temperature;       /* 0: greedy */
  int32_t top_k;           /* 0: off */
  float top_p;             /* 1: off */
  float min_p;             /* 0: off */
  float repeat_penalty;    /* 1: off */
  float frequency_penalty; /* 0: off */
  float presence_penalty;  /* 0: off */
  int32_t penalty_last_n;  /* tokens that penalties look back; -1: all */
  uint64_t seed;           /* the same seed gives the same text */
  const edgerunner_logit_bias* logit_bias;
  size_t logit_bias_count;
  const char* const* stop; /* strings that end the text, before them */
  size_t stop_count;
  const int32_t* stop_tokens; /* beside the model's own end */
  size_t stop_token_count;
  const char* json_schema; /* what the text must be: JSON of this schema, ... */
  const char* grammar;     /* ... or a text of this grammar in GBNF; NULL: anything */
  bool ignore_eos;
  bool circular_context; /* drop the oldest half where the context is full, and go on */
  uint32_t keep_tokens;  /* that a circular context never drops, from the first on */
  /* The adapters that apply, of those that were loaded with the model; those not listed don't.
   * NULL: all, as they were loaded; not NULL with a count of 0: none. */
  const edgerunner_adapter_scale* adapters;
  size_t adapter_count;
  int32_t guessing; /* edgerunner_guessing: off, lookup, or, by default, as loaded. Lookup needs
                     * a model with room for guesses (edgerunner_model_info.draft_tokens) */
  uint32_t draft_tokens; /* most guessed at once; 0, or more: as the model was loaded */
} edgerunner_generate_options;

/* `size` is sizeof(edgerunner_generate_options). */
EDGERUNNER_API edgerunner_status
edgerunner_generate_options_init(edgerunner_generate_options* options, size_t size);

/* A running generation: it runs ahead of its reader, and is cancelled where it is freed. */
typedef struct edgerunner_generation edgerunner_generation;

/* Starts to continue a text, which is encoded with BOS as the model asks and whose control tokens
 * are parsed. The options, which may be NULL, and all that they point to are copied. */
EDGERUNNER_API edgerunner_status edgerunner_generate(edgerunner_model* model, const char* prompt,
                                                     size_t prompt_size,
                                                     const edgerunner_generate_options* options,
                                                     edgerunner_generation** generation);
EDGERUNNER_API edgerunner_status edgerunner_generate_from_ids(
    edgerunner_model* model, const int32_t* ids, size_t count,
    const edgerunner_generate_options* options, edgerunner_generation** generation);

/* Waits for the next piece of text: whole characters of UTF-8, with a NUL after them that `size`
 * does not count; valid until the next call on this generation. At the end `piece` is NULL. Pieces
 * before a failure come first. `size` may be NULL. */
EDGERUNNER_API edgerunner_status edgerunner_generation_next(edgerunner_generation* generation,
                                                            const char** piece, size_t* size);

/* Waits for at most so long; whether edgerunner_generation_next would not wait. */
EDGERUNNER_API edgerunner_status edgerunner_generation_wait(edgerunner_generation* generation,
                                                            uint32_t milliseconds, bool* ready);

/* From any thread. Takes effect before the next forward pass; no failure, but a finish reason. */
EDGERUNNER_API void edgerunner_generation_cancel(edgerunner_generation* generation);

typedef enum edgerunner_finish {
  EDGERUNNER_FINISH_STOP = 0,        /* the model's end, a stop token or a stop string */
  EDGERUNNER_FINISH_LENGTH = 1,      /* max_tokens */
  EDGERUNNER_FINISH_CANCELLED = 2,   /* by request */
  EDGERUNNER_FINISH_CONTEXT_FULL = 3 /* the next token could not have been computed */
} edgerunner_finish;

typedef struct edgerunner_summary {
  int32_t finish; /* edgerunner_finish */
  uint32_t prompt_tokens;
  uint32_t reused_tokens; /* of the prompt, found in the KV cache */
  uint32_t generated_tokens;
  uint32_t context_shifts; /* times that a circular context dropped tokens */
  double prefill_seconds;
  double decode_seconds;
  double time_to_first_token; /* seconds from the call, waiting for others included */
  double prefill_tps;         /* computed prompt tokens a second */
  double decode_tps;          /* tokens after the first a second */
  const int32_t* tokens;      /* [generated_tokens]; live as long as the generation */
  uint32_t drafted_tokens;    /* that were guessed ahead and checked (edgerunner_guessing) */
  uint32_t accepted_tokens;   /* of these, guessed right */
} edgerunner_summary;

/* Waits for the end, dropping pieces not yet read. `size` is sizeof(edgerunner_summary). */
EDGERUNNER_API edgerunner_status edgerunner_generation_summary(edgerunner_generation* generation,
                                                               edgerunner_summary* summary,
                                                               size_t size);
EDGERUNNER_API void edgerunner_generation_free(edgerunner_generation* generation);

/* Chat. */

typedef struct edgerunner_chat_options {
  size_t size;
  const char* tools;     /* a JSON array of tools in OpenAI's form, or NULL */
  const char* variables; /* a JSON object: further variables of the template, or NULL */
} edgerunner_chat_options;

/* `size` is sizeof(edgerunner_chat_options). */
EDGERUNNER_API edgerunner_status edgerunner_chat_options_init(edgerunner_chat_options* options,
                                                              size_t size);

/* The prompt that the model's chat template makes of messages, a JSON array in OpenAI's form; the
 * buffer as of edgerunner_detokenize. */
EDGERUNNER_API edgerunner_status edgerunner_chat_render(edgerunner_model* model,
                                                        const char* messages,
                                                        const edgerunner_chat_options* options,
                                                        char* text, size_t capacity, size_t* size);

/* Starts the answer to a conversation, which is handed over as a whole each time; what the model
 * has seen of it is not computed again. Either options may be NULL. */
EDGERUNNER_API edgerunner_status edgerunner_chat(edgerunner_model* model, const char* messages,
                                                 const edgerunner_generate_options* generate,
                                                 const edgerunner_chat_options* chat,
                                                 edgerunner_generation** generation);

/* Of an answer: whether the last piece is of the model's reasoning, <think>...</think>, and the
 * calls of tools that it made, all of them after the last piece. They are no part of the pieces.
 * Both strings live as long as the generation; the arguments are the text of a JSON object. */
EDGERUNNER_API bool edgerunner_generation_in_reasoning(const edgerunner_generation* generation);
EDGERUNNER_API size_t
edgerunner_generation_tool_call_count(const edgerunner_generation* generation);
EDGERUNNER_API edgerunner_status
edgerunner_generation_tool_call(const edgerunner_generation* generation, size_t index,
                                const char** name, const char** arguments);

/* Logits and single tokens. */

/* Logits for sequences that are handed over as a whole each time: only what the cache has not is
 * computed. */
typedef struct edgerunner_session edgerunner_session;

EDGERUNNER_API edgerunner_status edgerunner_session_new(edgerunner_model* model,
                                                        edgerunner_session** session);
EDGERUNNER_API void edgerunner_session_free(edgerunner_session* session);

/* The logits after the last id, [count]: count is the vocabulary's size and may be NULL. They are
 * the session's, and valid until its next call. */
EDGERUNNER_API edgerunner_status edgerunner_session_logits(edgerunner_session* session,
                                                           const int32_t* ids, size_t id_count,
                                                           const float** logits, size_t* count);

/* The token that a generation would choose after the last id. Of the options, which may be NULL,
 * the ones up to logit_bias_count count. */
EDGERUNNER_API edgerunner_status
edgerunner_session_next_token(edgerunner_session* session, const int32_t* ids, size_t id_count,
                              const edgerunner_generate_options* options, int32_t* token);

/* Embeddings. */

typedef enum edgerunner_pooling {
  EDGERUNNER_POOLING_MEAN = 0, /* of all tokens */
  EDGERUNNER_POOLING_LAST = 1  /* the last token's */
} edgerunner_pooling;

/* The hidden states of a text after the final norm, pooled and scaled to length 1. The buffer, as
 * of edgerunner_tokenize, is of the model's embedding_size; one that is too small is refused before
 * anything is computed. */
EDGERUNNER_API edgerunner_status edgerunner_embed(edgerunner_model* model, const char* text,
                                                  size_t text_size, edgerunner_pooling pooling,
                                                  float* embedding, size_t capacity, size_t* count);
EDGERUNNER_API edgerunner_status edgerunner_embed_ids(edgerunner_model* model, const int32_t* ids,
                                                      size_t id_count, edgerunner_pooling pooling,
                                                      float* embedding, size_t capacity,
                                                      size_t* count);

#ifdef __cplusplus
}
#endif
