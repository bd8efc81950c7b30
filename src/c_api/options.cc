#include "c_api/options.h"

#include <cstring>
#include <string>

#include "c_api/call.h"
#include "edgerunner/error.h"

namespace edgerunner::c_api {
namespace {

template <typename Options>
Options defaults();

template <>
edgerunner_model_options defaults() {
  const ModelOptions usual;
  edgerunner_model_options options = {};
  options.prefill_chunk = usual.prefill_chunk;
  options.max_sequences = usual.max_sequences;
  options.guessing = EDGERUNNER_GUESSING_OFF;
  options.draft_tokens = usual.speculation.draft_tokens;
  options.draft_confidence = usual.speculation.draft_confidence;
  return options;
}

template <>
edgerunner_generate_options defaults() {
  const SamplingOptions usual;
  edgerunner_generate_options options = {};
  options.temperature = usual.temperature;
  options.top_k = usual.top_k;
  options.top_p = usual.top_p;
  options.min_p = usual.min_p;
  options.repeat_penalty = usual.repeat_penalty;
  options.frequency_penalty = usual.frequency_penalty;
  options.presence_penalty = usual.presence_penalty;
  options.penalty_last_n = usual.penalty_last_n;
  options.seed = usual.seed;
  options.guessing = EDGERUNNER_GUESSING_AS_LOADED;
  return options;
}

template <>
edgerunner_chat_options defaults() {
  return {};
}

template <typename Options>
void init(Options* options, std::size_t size) {
  require(options, "options");
  if (size < sizeof(options->size) || size > sizeof(Options)) {
    refuse("size", "must be the struct's sizeof, by a header no newer than this library");
  }
  Options usual = defaults<Options>();
  usual.size = size;
  std::memcpy(options, &usual, size);
}

// The members that the caller's version of the struct has; the defaults of the others.
template <typename Options>
Options read(const Options* given) {
  Options options = defaults<Options>();
  if (given == nullptr) return options;
  if (given->size < sizeof(given->size) || given->size > sizeof(Options)) {
    refuse("options.size", "is not what the struct's _init function fills in; call it first");
  }
  std::memcpy(&options, given, given->size);
  return options;
}

BackendKind to_backend(std::int32_t backend) {
  switch (backend) {
    case EDGERUNNER_BACKEND_CPU:
      return BackendKind::cpu;
    case EDGERUNNER_BACKEND_CUDA:
      return BackendKind::cuda;
    case EDGERUNNER_BACKEND_REFERENCE:
      return BackendKind::reference;
    default:
      refuse("options.backend", "is none of edgerunner_backend");
  }
}

Precision to_precision(std::int32_t precision) {
  switch (precision) {
    case EDGERUNNER_PRECISION_FAST:
      return Precision::fast;
    case EDGERUNNER_PRECISION_EXACT:
      return Precision::exact;
    default:
      refuse("options.precision", "is none of edgerunner_precision");
  }
}

std::optional<KvPrecision> to_kv(std::int32_t kv) {
  switch (kv) {
    case EDGERUNNER_KV_DEFAULT:
      return std::nullopt;
    case EDGERUNNER_KV_F16:
      return KvPrecision::f16;
    case EDGERUNNER_KV_F32:
      return KvPrecision::f32;
    case EDGERUNNER_KV_Q8:
      return KvPrecision::q8;
    default:
      refuse("options.kv", "is none of edgerunner_kv");
  }
}

SpeculationOptions to_speculation(const edgerunner_model_options& from) {
  SpeculationOptions options;
  switch (from.guessing) {
    case EDGERUNNER_GUESSING_OFF:
      break;
    case EDGERUNNER_GUESSING_LOOKUP:
      options.lookup = true;
      break;
    case EDGERUNNER_GUESSING_ON_REQUEST:
      options.on_request = true;
      break;
    default:
      refuse("options.guessing", "must be off, lookup or on_request of edgerunner_guessing");
  }
  if (from.draft_model != nullptr) options.draft_model = from.draft_model;
  options.draft_tokens = from.draft_tokens;
  options.draft_confidence = from.draft_confidence;
  return options;
}

Guessing to_guessing(std::int32_t guessing) {
  switch (guessing) {
    case EDGERUNNER_GUESSING_AS_LOADED:
      return Guessing::as_loaded;
    case EDGERUNNER_GUESSING_OFF:
      return Guessing::off;
    case EDGERUNNER_GUESSING_LOOKUP:
      return Guessing::lookup;
    default:
      refuse("options.guessing", "must be off, lookup or as_loaded of edgerunner_guessing");
  }
}

std::string text_or_empty(const char* text) { return text == nullptr ? "" : text; }

}  // namespace

ModelOptions to_model_options(const edgerunner_model_options* given) {
  const edgerunner_model_options from = read(given);
  ModelOptions options;
  options.backend = to_backend(from.backend);
  options.precision = to_precision(from.precision);
  options.kv = to_kv(from.kv);
  options.threads = from.threads;
  options.context = from.context;
  options.prefill_chunk = from.prefill_chunk;
  options.max_sequences = from.max_sequences;
  options.cache_tokens = from.cache_tokens;
  options.memory_limit = from.memory_limit;
  for (const auto& [path, scale] : array(from.adapters, from.adapter_count, "options.adapters")) {
    require(path, "a path of options.adapters");
    options.adapters.push_back({.path = path, .scale = scale});
  }
  options.speculation = to_speculation(from);
  if (from.progress != nullptr) {
    options.progress = [progress = from.progress, user = from.progress_user](double fraction) {
      if (progress(fraction, user)) return;
      throw Error(ErrorCode::cancelled, "loading was stopped by the progress function");
    };
  }
  return options;
}

GenerateOptions to_generate_options(const edgerunner_generate_options* given) {
  const edgerunner_generate_options from = read(given);
  GenerateOptions options;
  options.max_tokens = from.max_tokens;
  options.sampling.temperature = from.temperature;
  options.sampling.top_k = from.top_k;
  options.sampling.top_p = from.top_p;
  options.sampling.min_p = from.min_p;
  options.sampling.repeat_penalty = from.repeat_penalty;
  options.sampling.frequency_penalty = from.frequency_penalty;
  options.sampling.presence_penalty = from.presence_penalty;
  options.sampling.penalty_last_n = from.penalty_last_n;
  options.sampling.seed = from.seed;
  for (const auto& [token, bias] :
       array(from.logit_bias, from.logit_bias_count, "options.logit_bias")) {
    options.sampling.logit_bias.emplace_back(token, bias);
  }
  for (const char* stop : array(from.stop, from.stop_count, "options.stop")) {
    require(stop, "a string of options.stop");
    options.stop.emplace_back(stop);
  }
  const auto tokens = array(from.stop_tokens, from.stop_token_count, "options.stop_tokens");
  options.stop_tokens.assign(tokens.begin(), tokens.end());
  options.json_schema = text_or_empty(from.json_schema);
  options.grammar = text_or_empty(from.grammar);
  options.ignore_eos = from.ignore_eos;
  options.circular_context = from.circular_context;
  options.keep_tokens = from.keep_tokens;
  const auto adapters = array(from.adapters, from.adapter_count, "options.adapters");
  if (from.adapters != nullptr) {
    std::vector<AdapterScale>& chosen = options.adapters.emplace();
    for (const auto& [id, scale] : adapters) chosen.push_back({.id = id, .scale = scale});
  }
  options.guessing = to_guessing(from.guessing);
  options.draft_tokens = from.draft_tokens;
  return options;
}

ChatOptions to_chat_options(const edgerunner_chat_options* given) {
  const edgerunner_chat_options from = read(given);
  return {.tools = text_or_empty(from.tools), .variables = text_or_empty(from.variables)};
}

Pooling to_pooling(edgerunner_pooling pooling) {
  switch (pooling) {
    case EDGERUNNER_POOLING_MEAN:
      return Pooling::mean;
    case EDGERUNNER_POOLING_LAST:
      return Pooling::last;
  }
  refuse("pooling", "is none of edgerunner_pooling");
}

}  // namespace edgerunner::c_api

using edgerunner::c_api::guard;

edgerunner_status edgerunner_model_options_init(edgerunner_model_options* options, size_t size) {
  return guard([&] { edgerunner::c_api::init(options, size); });
}

edgerunner_status edgerunner_generate_options_init(edgerunner_generate_options* options,
                                                   size_t size) {
  return guard([&] { edgerunner::c_api::init(options, size); });
}

edgerunner_status edgerunner_chat_options_init(edgerunner_chat_options* options, size_t size) {
  return guard([&] { edgerunner::c_api::init(options, size); });
}
