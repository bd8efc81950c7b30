#pragma once

#include <string_view>
#include <vector>

#include "server/engine.h"
#include "server/fields.h"

namespace edgerunner::server {

// A field that holds a text, an array of texts, an array of token ids or an array of such arrays.
// Each is encoded, not empty, and no longer than the context.
std::vector<std::vector<TokenId>> read_prompts(const Fields& fields, std::string_view name,
                                               std::size_t most, Engine& engine);

}  // namespace edgerunner::server
