#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "edgerunner/generation.h"
#include "edgerunner/model.h"
#include "server/fields.h"

namespace edgerunner::server {

// The fields that completions and chat share: temperature, top_p, top_k, min_p, repeat_penalty,
// frequency_penalty, presence_penalty, logit_bias, seed, stop, ignore_eos, speculate and
// draft_tokens. Without a seed one is drawn.
GenerateOptions read_sampling(const Fields& fields, const ModelInfo& model);

// stream_options.include_usage.
bool read_include_usage(const Fields& fields);

// The error for a prompt that doesn't fit, with both numbers.
[[noreturn]] void fail_too_long(const Fields& fields, std::string_view name, std::size_t tokens,
                                std::uint32_t context);

inline constexpr std::int64_t kMostChoices = 128;
inline constexpr std::int64_t kMostTopLogprobs = 20;

}  // namespace edgerunner::server
