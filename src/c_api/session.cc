#include <span>

#include "c_api/call.h"
#include "c_api/handles.h"
#include "c_api/options.h"

using namespace edgerunner::c_api;

edgerunner_status edgerunner_session_new(edgerunner_model* model, edgerunner_session** session) {
  return guard([&] {
    require(model, "model");
    require(session, "session");
    *session = new edgerunner_session{.session = model->model.session()};
  });
}

void edgerunner_session_free(edgerunner_session* session) { delete session; }

edgerunner_status edgerunner_session_logits(edgerunner_session* session, const int32_t* ids,
                                            size_t id_count, const float** logits, size_t* count) {
  return guard([&] {
    require(session, "session");
    require(logits, "logits");
    const std::span<const float> values = session->session.logits(array(ids, id_count, "ids"));
    *logits = values.data();
    if (count != nullptr) *count = values.size();
  });
}

edgerunner_status edgerunner_session_next_token(edgerunner_session* session, const int32_t* ids,
                                                size_t id_count,
                                                const edgerunner_generate_options* options,
                                                int32_t* token) {
  return guard([&] {
    require(session, "session");
    require(token, "token");
    *token = session->session.next_token(array(ids, id_count, "ids"),
                                         to_generate_options(options).sampling);
  });
}
