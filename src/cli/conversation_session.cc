#include "cli/conversation_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/output_file.h"
#include "base/parse_json.h"
#include "chat/chat_template.h"
#include "cli/input.h"
#include "edgerunner/error.h"

namespace edgerunner::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& messages, int indent) {
  return messages.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

ConversationSession::ConversationSession(Model& model, GenerateOptions options)
    : model_(model), options_(std::move(options)), chat_(model) {}

Summary ConversationSession::answer(const OnPiece& on_piece, std::stop_token stop) {
  ChatReply reply = chat_.reply(dump(messages_, -1), options_, {}, std::move(stop));
  std::string content;
  while (const auto piece = reply.next()) {
    on_piece(piece->text, piece->reasoning);
    if (!piece->reasoning) content += piece->text;
  }
  last_ = reply.summary();
  messages_.push_back({{"role", "assistant"}, {"content", content}});
  return *last_;
}

Summary ConversationSession::ask(const std::string& text, const OnPiece& on_piece,
                                 std::stop_token stop) {
  const Json before = messages_;
  messages_.push_back({{"role", "user"}, {"content", text}});
  try {
    return answer(on_piece, std::move(stop));
  } catch (...) {
    messages_ = before;
    throw;
  }
}

Summary ConversationSession::retry(const OnPiece& on_piece, std::stop_token stop) {
  const Json before = messages_;
  while (!messages_.empty() && messages_.back()["role"] == "assistant") {
    messages_.erase(messages_.size() - 1);
  }
  if (messages_.empty() || messages_.back()["role"] != "user") {
    messages_ = before;
    throw Error(ErrorCode::invalid_argument, "there is no message to answer again");
  }
  // The same seed would give the same answer.
  ++options_.sampling.seed;
  try {
    return answer(on_piece, std::move(stop));
  } catch (...) {
    messages_ = before;
    throw;
  }
}

void ConversationSession::restart(const std::string& system) {
  messages_ = Json::array();
  last_.reset();
  if (!system.empty()) {
    messages_.push_back({{"role", "system"}, {"content", system}});
  }
}

void ConversationSession::save(const std::string& path) const {
  OutputFile file(path);
  const std::string text = dump(messages_, 2) + "\n";
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

void ConversationSession::load(const std::string& path) {
  const std::string text = read_file(path);
  Json messages;
  try {
    messages = parse_json<Json>(text);
  } catch (const std::exception& error) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} is not JSON: {}", path, error.what()));
  }
  messages_ = template_messages(messages);
  last_.reset();
}

std::size_t ConversationSession::turns() const {
  return static_cast<std::size_t>(
      std::count_if(messages_.begin(), messages_.end(),
                    [](const Json& message) { return message["role"] == "user"; }));
}

}  // namespace edgerunner::cli
