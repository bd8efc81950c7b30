#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "chat/chat_template.h"
#include "chat/output_parser.h"
#include "constraint/grammar.h"
#include "edgerunner/generation.h"
#include "server/engine.h"
#include "server/fields.h"

namespace edgerunner::server {

// What a conversation became: the prompt, and how to read what the model makes of it.
struct ChatPrompt {
  std::vector<TokenId> ids;
  OutputFormat format;
};

// Renders and encodes. Errors of the template and a prompt that is too long are laid to `field`.
ChatPrompt make_chat_prompt(Engine& engine, const Conversation& conversation, const Fields& fields,
                            std::string_view field);

// A request of /v1/chat/completions.
struct ChatRequest {
  ChatPrompt prompt;
  GenerateOptions options;
  std::shared_ptr<const Grammar> grammar;  // what the answer is held to, or null
  std::size_t n = 1;
  std::optional<std::uint32_t> top_logprobs;  // absent: no logprobs
  bool stream = false;
  bool include_usage = false;
};

// Throws ApiError(400) naming the field.
ChatRequest read_chat_request(Engine& engine, const Json& body);

}  // namespace edgerunner::server
