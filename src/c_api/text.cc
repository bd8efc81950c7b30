#include <span>
#include <string>
#include <vector>

#include "c_api/call.h"
#include "c_api/handles.h"
#include "c_api/options.h"
#include "edgerunner/embedding.h"

using namespace edgerunner::c_api;

namespace {

// The embedding of a text or of ids.
template <typename Input>
void embed(edgerunner_model& model, Input input, edgerunner_pooling pooling, float* embedding,
           std::size_t capacity, std::size_t* count) {
  require(count, "the count");
  const std::size_t size = edgerunner::embedding_size(model.model);
  *count = size;
  if (embedding == nullptr && capacity == 0) return;
  require(embedding, "the buffer");
  if (capacity < size) refuse_buffer(size, capacity);
  const std::vector<float> values = edgerunner::embed(model.model, input, to_pooling(pooling));
  std::copy(values.begin(), values.end(), embedding);
}

}  // namespace

edgerunner_status edgerunner_tokenize(edgerunner_model* model, const char* bytes, size_t text_size,
                                      bool add_special, bool parse_special, int32_t* ids,
                                      size_t capacity, size_t* count) {
  return guard([&] {
    require(model, "model");
    const std::vector<edgerunner::TokenId> tokens = model->model.tokenizer().encode(
        text(bytes, text_size, "text"),
        {.add_special = add_special, .parse_special = parse_special});
    copy_out(std::span(tokens), ids, capacity, count);
  });
}

edgerunner_status edgerunner_detokenize(edgerunner_model* model, const int32_t* ids, size_t count,
                                        bool special, char* buffer, size_t capacity, size_t* size) {
  return guard([&] {
    require(model, "model");
    const std::string decoded = model->model.tokenizer().decode(array(ids, count, "ids"), special);
    copy_out(decoded, buffer, capacity, size);
  });
}

edgerunner_status edgerunner_chat_render(edgerunner_model* model, const char* messages,
                                         const edgerunner_chat_options* options, char* buffer,
                                         size_t capacity, size_t* size) {
  return guard([&] {
    require(model, "model");
    require(messages, "messages");
    copy_out(model->chat().render(messages, to_chat_options(options)), buffer, capacity, size);
  });
}

edgerunner_status edgerunner_embed(edgerunner_model* model, const char* bytes, size_t text_size,
                                   edgerunner_pooling pooling, float* embedding, size_t capacity,
                                   size_t* count) {
  return guard([&] {
    require(model, "model");
    embed(*model, text(bytes, text_size, "text"), pooling, embedding, capacity, count);
  });
}

edgerunner_status edgerunner_embed_ids(edgerunner_model* model, const int32_t* ids, size_t id_count,
                                       edgerunner_pooling pooling, float* embedding,
                                       size_t capacity, size_t* count) {
  return guard([&] {
    require(model, "model");
    embed(*model, array(ids, id_count, "ids"), pooling, embedding, capacity, count);
  });
}
