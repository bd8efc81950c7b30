#include "server/text_routes.h"

#include "server/api_error.h"
#include "server/fields.h"
#include "server/json.h"

namespace edgerunner::server {
namespace {

Json model_json(Engine& engine) {
  const ModelInfo& info = engine.info();
  return {{"id", engine.options().model_id},   {"object", "model"},
          {"created", engine.started()},       {"owned_by", "edgerunner"},
          {"context_length", info.context},    {"parameters", info.parameters},
          {"architecture", info.architecture}, {"draft_tokens", info.draft_tokens}};
}

}  // namespace

void handle_health(Engine& engine, const std::shared_ptr<Exchange>& exchange) {
  const bool ready = engine.ready();
  exchange->respond(
      {.status = ready ? 200U : 503U, .body = to_text({{"status", ready ? "ok" : "loading"}})});
}

void handle_models(Engine& engine, const std::shared_ptr<Exchange>& exchange) {
  exchange->respond(
      {.body = to_text({{"object", "list"}, {"data", Json::array({model_json(engine)})}})});
}

void handle_model(Engine& engine, const std::shared_ptr<Exchange>& exchange) {
  exchange->respond({.body = to_text(model_json(engine))});
}

void handle_metrics(Engine& engine, const std::shared_ptr<Exchange>& exchange) {
  const SchedulerStatus status = engine.ready() ? engine.status() : SchedulerStatus{};
  exchange->respond({.content_type = "text/plain; version=0.0.4; charset=utf-8",
                     .body = engine.metrics().text(status)});
}

void handle_tokenize(Engine& engine, const std::shared_ptr<Exchange>& exchange) {
  const Tokenizer& tokenizer = engine.tokenizer();
  const Json body = parse_body(exchange->request().body);
  const Fields fields(body);
  std::optional<std::string> text = fields.text("content");
  if (!text) text = fields.text("text");
  if (!text) fields.require("content");
  const auto ids =
      tokenizer.encode(*text, {.add_special = fields.boolean("add_special").value_or(false),
                               .parse_special = fields.boolean("parse_special").value_or(true)});
  exchange->respond({.body = to_text({{"tokens", ids}})});
}

void handle_detokenize(Engine& engine, const std::shared_ptr<Exchange>& exchange) {
  const Tokenizer& tokenizer = engine.tokenizer();
  const Json body = parse_body(exchange->request().body);
  const Fields fields(body);
  fields.require("tokens");
  std::vector<TokenId> ids;
  for (const Json& id : *fields.array("tokens")) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= tokenizer.size()) {
      fields.fail("tokens", "must be an array of token ids of the vocabulary");
    }
    ids.push_back(id.get<TokenId>());
  }
  exchange->respond({.body = to_text({{"content", tokenizer.decode(ids, true)}})});
}

}  // namespace edgerunner::server
