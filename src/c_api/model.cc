#include <algorithm>
#include <cstring>

#include "c_api/call.h"
#include "c_api/handles.h"
#include "c_api/options.h"
#include "edgerunner/embedding.h"
#include "edgerunner/error.h"

using namespace edgerunner::c_api;

namespace {

// Null where the file has none.
const edgerunner::Tokenizer* find_tokenizer(const edgerunner::Model& model) {
  try {
    return &model.tokenizer();
  } catch (const edgerunner::Error&) {
    return nullptr;
  }
}

}  // namespace

const edgerunner::Chat& edgerunner_model::chat() {
  std::call_once(chat_made_, [this] { chat_.emplace(model); });
  return *chat_;
}

edgerunner_status edgerunner_model_load(const char* path, const edgerunner_model_options* options,
                                        edgerunner_model** model) {
  return guard([&] {
    require(path, "path");
    require(model, "model");
    *model = new edgerunner_model(edgerunner::Model::load(path, to_model_options(options)));
  });
}

void edgerunner_model_free(edgerunner_model* model) { delete model; }

edgerunner_status edgerunner_model_get_info(edgerunner_model* model, edgerunner_model_info* info,
                                            size_t size) {
  return guard([&] {
    require(model, "model");
    require(info, "info");
    const edgerunner::ModelInfo& from = model->model.info();
    edgerunner_model_info all = {};
    all.architecture = from.architecture.c_str();
    all.name = from.name.c_str();
    all.chat_template = from.chat_template.c_str();
    all.backend = from.backend.c_str();
    all.isa = from.isa.c_str();
    all.parameters = from.parameters;
    all.file_bytes = from.file_bytes;
    all.weights_bytes = from.weights_bytes;
    all.cache_bytes = from.cache_bytes;
    all.scratch_bytes = from.scratch_bytes;
    all.vocab_size = from.vocab_size;
    all.embedding_size = embedding_size(model->model);
    all.trained_context = from.trained_context;
    all.context = from.context;
    all.threads = from.threads;
    const edgerunner::Tokenizer* tokenizer = find_tokenizer(model->model);
    all.bos = tokenizer == nullptr ? edgerunner::kNoToken : tokenizer->bos();
    all.eos = tokenizer == nullptr ? edgerunner::kNoToken : tokenizer->eos();
    all.draft_tokens = from.draft_tokens;
    std::memcpy(info, &all, std::min(size, sizeof(all)));
  });
}

edgerunner_status edgerunner_model_cancel_all(edgerunner_model* model) {
  return guard([&] {
    require(model, "model");
    model->model.cancel_all();
  });
}
