#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include "edgerunner/types.h"

namespace edgerunner {

class Model;

// What becomes of the hidden states of a text's tokens.
enum class Pooling : std::uint8_t {
  mean,  // of all tokens
  last,  // the last token's
};

// The embedding of a text: its hidden states after the final norm, pooled and scaled to length 1,
// [embedding_size(model)], with the adapters as the model was loaded with them. From any thread;
// computed together with the model's generations. A text is encoded as Model::generate does. Throws
// Error(invalid_argument) where there are no tokens or one is outside the vocabulary,
// Error(context_full) for more than the context holds, Error(cancelled) by `stop`, by
// Model::cancel_all() or where the model is destroyed.
std::vector<float> embed(Model& model, std::string_view text, Pooling pooling = Pooling::mean,
                         std::stop_token stop = {});
std::vector<float> embed(Model& model, std::span<const TokenId> tokens,
                         Pooling pooling = Pooling::mean, std::stop_token stop = {});

std::uint32_t embedding_size(Model& model);

}  // namespace edgerunner
