#include "server/logprob_json.h"

#include <algorithm>
#include <cstdint>

namespace edgerunner::server {
namespace {

Json chat_entry(const Tokenizer& tokenizer, const TokenLogprob& token) {
  const std::string text = tokenizer.token_bytes(token.token, true);
  Json bytes = Json::array();
  for (const char c : text) bytes.push_back(static_cast<std::uint8_t>(c));
  return {{"token", text}, {"logprob", token.logprob}, {"bytes", std::move(bytes)}};
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

Json chat_logprobs(const Tokenizer& tokenizer, std::span<const TokenReport> reports) {
  Json list = Json::array();
  for (const TokenReport& report : reports) {
    Json entry = chat_entry(tokenizer, report.chosen);
    Json& top = entry["top_logprobs"] = Json::array();
    for (const TokenLogprob& token : report.likeliest) top.push_back(chat_entry(tokenizer, token));
    list.push_back(std::move(entry));
  }
  return list;
}

Json completion_logprobs(const Tokenizer& tokenizer, std::span<const TokenReport> reports,
                         const std::string& text_so_far) {
  Json tokens = Json::array();
  Json logprobs = Json::array();
  Json top = Json::array();
  Json offsets = Json::array();
  for (const TokenReport& report : reports) {
    tokens.push_back(tokenizer.token_bytes(report.chosen.token, true));
    logprobs.push_back(report.chosen.logprob);
    Json likeliest = Json::object();
    for (const TokenLogprob& token : report.likeliest) {
      likeliest[tokenizer.token_bytes(token.token, true)] = token.logprob;
    }
    top.push_back(std::move(likeliest));
    offsets.push_back(characters(std::string_view(text_so_far).substr(0, report.text_begin)));
  }
  return {{"tokens", std::move(tokens)},
          {"token_logprobs", std::move(logprobs)},
          {"top_logprobs", std::move(top)},
          {"text_offset", std::move(offsets)}};
}

}  // namespace edgerunner::server
