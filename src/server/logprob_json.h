#pragma once

#include <span>
#include <string>

#include "edgerunner/tokenizer.h"
#include "runtime/generation_sink.h"
#include "server/json.h"

namespace edgerunner::server {

// [{"token","logprob","bytes","top_logprobs":[...]}, ...], as chat's "content" has them.
Json chat_logprobs(const Tokenizer& tokenizer, std::span<const TokenReport> reports);

// {"tokens","token_logprobs","top_logprobs","text_offset"}, as completions have them; offsets are
// counted from the beginning of the choice's text, in characters.
Json completion_logprobs(const Tokenizer& tokenizer, std::span<const TokenReport> reports,
                         const std::string& text_so_far);

}  // namespace edgerunner::server
