#include "cli/conversation_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "chat/output_parser.h"
#include "cli/input.h"
#include "edgerunner/error.h"

namespace edgerunner::cli {

using Json = nlohmann::ordered_json;

ConversationSession::ConversationSession(Model& model, GenerateOptions options)
    : model_(model),
      options_(std::move(options)),
      template_(model.info().chat_template, model.tokenizer()) {}

Summary ConversationSession::answer(const OnPiece& on_piece, std::stop_token stop) {
  const RenderedPrompt prompt = template_.prompt(conversation_);
  const OutputFormat format = detect_output_format(template_.source(), prompt.text, false);
  GenerateOptions options = options_;
  options.visible_tokens = marker_tokens(model_.tokenizer(), format);
  Generation generation = model_.generate(prompt.ids, options, std::move(stop));
  OutputParser parser(format);
  std::string content;
  const auto pass_on = [&](const OutputDelta& delta) {
    if (!delta.reasoning.empty()) on_piece(delta.reasoning, true);
    if (!delta.content.empty()) on_piece(delta.content, false);
    content += delta.content;
  };
  for (const std::string& piece : generation) pass_on(parser.push(piece));
  pass_on(parser.finish());
  last_ = generation.summary();
  conversation_.messages.push_back({{"role", "assistant"}, {"content", content}});
  return *last_;
}

Summary ConversationSession::ask(const std::string& text, const OnPiece& on_piece,
                                 std::stop_token stop) {
  const Json before = conversation_.messages;
  conversation_.messages.push_back({{"role", "user"}, {"content", text}});
  try {
    return answer(on_piece, std::move(stop));
  } catch (...) {
    conversation_.messages = before;
    throw;
  }
}

Summary ConversationSession::retry(const OnPiece& on_piece, std::stop_token stop) {
  const Json before = conversation_.messages;
  Json& messages = conversation_.messages;
  while (!messages.empty() && messages.back()["role"] == "assistant") {
    messages.erase(messages.size() - 1);
  }
  if (messages.empty() || messages.back()["role"] != "user") {
    messages = before;
    throw Error(ErrorCode::invalid_argument, "there is no message to answer again");
  }
  // The same seed would give the same answer.
  ++options_.sampling.seed;
  try {
    return answer(on_piece, std::move(stop));
  } catch (...) {
    messages = before;
    throw;
  }
}

void ConversationSession::restart(const std::string& system) {
  conversation_.messages = Json::array();
  last_.reset();
  if (!system.empty()) {
    conversation_.messages.push_back({{"role", "system"}, {"content", system}});
  }
}

void ConversationSession::save(const std::string& path) const {
  std::ofstream file(path, std::ios::binary);
  file << conversation_.messages.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  file.close();
  if (!file) throw Error(ErrorCode::io, fmt::format("cannot write {}", path));
}

void ConversationSession::load(const std::string& path) {
  const Json messages = Json::parse(read_file(path), nullptr, false);
  if (messages.is_discarded()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} is not JSON", path));
  }
  conversation_.messages = template_messages(messages);
  last_.reset();
}

std::size_t ConversationSession::turns() const {
  return static_cast<std::size_t>(
      std::count_if(conversation_.messages.begin(), conversation_.messages.end(),
                    [](const Json& message) { return message["role"] == "user"; }));
}

}  // namespace edgerunner::cli
