#include "server/api.h"

#include <utility>

#include "server/chat_completions.h"
#include "server/completions.h"
#include "server/embeddings.h"
#include "server/lora_fields.h"
#include "server/responses.h"
#include "server/text_routes.h"
#include "server/web_routes.h"

namespace edgerunner::server {

Router make_router(Engine& engine, std::string api_key) {
  Router router(std::move(api_key));
  const auto add = [&](const char* method, const std::string& path, auto handler,
                       Router::Access access = Router::Access::key) {
    router.add(
        method, path,
        [&engine, handler](const std::shared_ptr<Exchange>& exchange) {
          handler(engine, exchange);
        },
        access);
  };
  add("GET", "/health", handle_health, Router::Access::anyone);
  add("GET", "/metrics", handle_metrics);
  add("GET", "/v1/models", handle_models);
  add("GET", "/v1/models/" + engine.options().model_id, handle_model);
  add("POST", "/v1/chat/completions", handle_chat_completion);
  add("POST", "/v1/completions", handle_completion);
  add("POST", "/v1/embeddings", handle_embeddings);
  add("POST", "/v1/responses", handle_response);
  add("GET", "/lora-adapters", handle_lora_adapters);
  add("GET", "/v1/lora-adapters", handle_lora_adapters);
  add("POST", "/tokenize", handle_tokenize);
  add("POST", "/detokenize", handle_detokenize);
  add_web_routes(router);
  return router;
}

}  // namespace edgerunner::server
