#pragma once

#include "edgerunner/chat.h"
#include "edgerunner/edgerunner.h"
#include "edgerunner/embedding.h"
#include "edgerunner/generation.h"
#include "edgerunner/model.h"

namespace edgerunner::c_api {

// What the structs of the C interface say, NULL being the defaults. Throw Error(invalid_argument)
// that names the member, as for a struct that no _init has filled in; what the runtime checks is
// left to it.
ModelOptions to_model_options(const edgerunner_model_options* given);
GenerateOptions to_generate_options(const edgerunner_generate_options* given);
ChatOptions to_chat_options(const edgerunner_chat_options* given);
Pooling to_pooling(edgerunner_pooling pooling);

}  // namespace edgerunner::c_api
