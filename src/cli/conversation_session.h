#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "edgerunner/chat.h"
#include "edgerunner/generation.h"
#include "edgerunner/model.h"

namespace edgerunner::cli {

// A conversation with a model, turn by turn. Each turn hands over the whole conversation; what the
// model has seen of it is in its cache, so only the new turn is computed.
class ConversationSession {
 public:
  // Throws Error(unsupported) for a model without a chat template. `model` must live as long.
  ConversationSession(Model& model, GenerateOptions options);

  // A piece of an answer, or of the reasoning before it.
  using OnPiece = std::function<void(std::string_view piece, bool reasoning)>;

  // The answer to a message, which becomes part of the conversation, stopped or not. Where it
  // fails, the conversation is as before.
  Summary ask(const std::string& text, const OnPiece& on_piece, std::stop_token stop);
  // Another answer to the last message. Throws Error(invalid_argument) where there is none.
  Summary retry(const OnPiece& on_piece, std::stop_token stop);

  // Begins anew, with a system message unless it is empty.
  void restart(const std::string& system);

  void save(const std::string& path) const;  // throws Error(io)
  void load(const std::string& path);        // throws Error(io, invalid_argument)

  std::size_t turns() const;  // messages of the user
  const std::optional<Summary>& last() const { return last_; }
  std::uint32_t context() const { return model_.info().context; }

 private:
  Summary answer(const OnPiece& on_piece, std::stop_token stop);

  Model& model_;
  GenerateOptions options_;
  Chat chat_;
  nlohmann::ordered_json messages_ = nlohmann::ordered_json::array();
  std::optional<Summary> last_;
};

}  // namespace edgerunner::cli
