#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "edgerunner/chat.h"
#include "edgerunner/generation.h"
#include "edgerunner/model.h"
#include "edgerunner/session.h"

// What stands behind the handles of the C interface.

struct edgerunner_model {
  explicit edgerunner_model(edgerunner::Model loaded) : model(std::move(loaded)) {}

  // The model's template, compiled when it is first asked for. Throws as edgerunner::Chat does.
  const edgerunner::Chat& chat();

  edgerunner::Model model;

 private:
  std::once_flag chat_made_;
  std::optional<edgerunner::Chat> chat_;
};

struct edgerunner_generation {
  std::variant<edgerunner::Generation, edgerunner::ChatReply> running;
  std::optional<edgerunner::ChatPiece> piece = {};  // the last one that was read
};

struct edgerunner_session {
  edgerunner::Session session;
};
