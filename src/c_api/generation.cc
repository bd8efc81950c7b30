#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "c_api/call.h"
#include "c_api/handles.h"
#include "c_api/options.h"

using namespace edgerunner::c_api;

namespace {

static_assert(static_cast<int>(edgerunner::FinishReason::stop) == EDGERUNNER_FINISH_STOP);
static_assert(static_cast<int>(edgerunner::FinishReason::length) == EDGERUNNER_FINISH_LENGTH);
static_assert(static_cast<int>(edgerunner::FinishReason::cancelled) == EDGERUNNER_FINISH_CANCELLED);
static_assert(static_cast<int>(edgerunner::FinishReason::context_full) ==
              EDGERUNNER_FINISH_CONTEXT_FULL);

std::optional<edgerunner::ChatPiece> next_piece(edgerunner::Generation& generation) {
  const edgerunner::Generation::Iterator piece = generation.begin();
  if (piece == generation.end()) return std::nullopt;
  return edgerunner::ChatPiece{.text = *piece, .reasoning = false};
}

std::optional<edgerunner::ChatPiece> next_piece(edgerunner::ChatReply& reply) {
  return reply.next();
}

template <typename Running>
void hand_over(Running running, edgerunner_generation** generation) {
  *generation = new edgerunner_generation{.running = std::move(running)};
}

const edgerunner::ChatReply* reply_of(const edgerunner_generation* generation) {
  return generation == nullptr ? nullptr : std::get_if<edgerunner::ChatReply>(&generation->running);
}

}  // namespace

edgerunner_status edgerunner_generate(edgerunner_model* model, const char* prompt,
                                      size_t prompt_size,
                                      const edgerunner_generate_options* options,
                                      edgerunner_generation** generation) {
  return guard([&] {
    require(model, "model");
    require(generation, "generation");
    hand_over(
        model->model.generate(text(prompt, prompt_size, "prompt"), to_generate_options(options)),
        generation);
  });
}

edgerunner_status edgerunner_generate_from_ids(edgerunner_model* model, const int32_t* ids,
                                               size_t count,
                                               const edgerunner_generate_options* options,
                                               edgerunner_generation** generation) {
  return guard([&] {
    require(model, "model");
    require(generation, "generation");
    hand_over(model->model.generate(array(ids, count, "ids"), to_generate_options(options)),
              generation);
  });
}

edgerunner_status edgerunner_chat(edgerunner_model* model, const char* messages,
                                  const edgerunner_generate_options* generate,
                                  const edgerunner_chat_options* chat,
                                  edgerunner_generation** generation) {
  return guard([&] {
    require(model, "model");
    require(messages, "messages");
    require(generation, "generation");
    hand_over(model->chat().reply(messages, to_generate_options(generate), to_chat_options(chat)),
              generation);
  });
}

edgerunner_status edgerunner_generation_next(edgerunner_generation* generation, const char** piece,
                                             size_t* size) {
  return guard([&] {
    require(generation, "generation");
    require(piece, "piece");
    generation->piece =
        std::visit([](auto& running) { return next_piece(running); }, generation->running);
    *piece = generation->piece ? generation->piece->text.c_str() : nullptr;
    if (size != nullptr) *size = generation->piece ? generation->piece->text.size() : 0;
  });
}

edgerunner_status edgerunner_generation_wait(edgerunner_generation* generation,
                                             uint32_t milliseconds, bool* ready) {
  return guard([&] {
    require(generation, "generation");
    require(ready, "ready");
    *ready = std::visit(
        [&](auto& running) { return running.wait_for(std::chrono::milliseconds(milliseconds)); },
        generation->running);
  });
}

void edgerunner_generation_cancel(edgerunner_generation* generation) {
  if (generation == nullptr) return;
  std::visit([](auto& running) { running.cancel(); }, generation->running);
}

edgerunner_status edgerunner_generation_summary(edgerunner_generation* generation,
                                                edgerunner_summary* summary, size_t size) {
  return guard([&] {
    require(generation, "generation");
    require(summary, "summary");
    const edgerunner::Summary& from =
        std::visit([](auto& running) -> const edgerunner::Summary& { return running.summary(); },
                   generation->running);
    edgerunner_summary all = {};
    all.finish = static_cast<std::int32_t>(from.finish_reason);
    all.prompt_tokens = from.prompt_tokens;
    all.reused_tokens = from.reused_tokens;
    all.generated_tokens = from.generated_tokens;
    all.context_shifts = from.context_shifts;
    all.prefill_seconds = from.prefill_seconds;
    all.decode_seconds = from.decode_seconds;
    all.time_to_first_token = from.time_to_first_token_s;
    all.prefill_tps = from.prefill_tps;
    all.decode_tps = from.decode_tps;
    all.tokens = from.tokens.data();
    all.drafted_tokens = from.drafted_tokens;
    all.accepted_tokens = from.accepted_tokens;
    std::memcpy(summary, &all, std::min(size, sizeof(all)));
  });
}

void edgerunner_generation_free(edgerunner_generation* generation) { delete generation; }

bool edgerunner_generation_in_reasoning(const edgerunner_generation* generation) {
  return generation != nullptr && generation->piece && generation->piece->reasoning;
}

size_t edgerunner_generation_tool_call_count(const edgerunner_generation* generation) {
  const edgerunner::ChatReply* reply = reply_of(generation);
  return reply == nullptr ? 0 : reply->tool_calls().size();
}

edgerunner_status edgerunner_generation_tool_call(const edgerunner_generation* generation,
                                                  size_t index, const char** name,
                                                  const char** arguments) {
  return guard([&] {
    require(generation, "generation");
    require(name, "name");
    require(arguments, "arguments");
    if (index >= edgerunner_generation_tool_call_count(generation)) {
      refuse("index", "is not below edgerunner_generation_tool_call_count");
    }
    const edgerunner::ToolCall& call = reply_of(generation)->tool_calls()[index];
    *name = call.name.c_str();
    *arguments = call.arguments.c_str();
  });
}
