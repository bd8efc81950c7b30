#include "convert/tokenizer_json.h"

#include <fmt/format.h>

#include <fstream>
#include <unordered_map>
#include <unordered_set>

#include "convert/special_tokens.h"
#include "convert/tokenizer_splits.h"
#include "tokenizer/vocabulary.h"

namespace edgerunner::convert {
namespace {

using Merge = std::pair<std::string, std::string>;

// Reads tokenizer.json's lists.
class TokenizerReader {
 public:
  TokenizerReader(const Config& json, std::uint32_t vocab)
      : json_(json), model_(require_model(json)), tokens_{{}, {}} {
    tokens_.texts.resize(vocab);
    tokens_.kinds.assign(vocab, TokenKind::unused);
  }

  Tokens read_tokens(bool byte_level) {
    const auto vocabulary = model_.find_object("vocab");
    if (!vocabulary) model_.refuse("vocab", "is missing");
    for (const auto& [text, id] : model_.find("vocab")->items()) {
      place(text, id_of(text, id), TokenKind::normal);
    }
    read_added();
    const auto unknown = model_.find_string("unk_token");
    for (std::size_t id = 0; id < tokens_.texts.size(); ++id) {
      std::string& text = tokens_.texts[id];
      TokenKind& kind = tokens_.kinds[id];
      if (kind == TokenKind::unused) text = fmt::format("[PAD{}]", id);
      if (!byte_level && unknown && text == *unknown) kind = TokenKind::unknown;
      if (!byte_level && kind == TokenKind::normal && is_byte(text)) kind = TokenKind::byte;
    }
    return std::move(tokens_);
  }

  std::vector<Merge> read_merges() const {
    const nlohmann::json* list = model_.find("merges");
    if (list == nullptr || !list->is_array()) model_.refuse("merges", "must be a list");
    std::vector<Merge> merges;
    merges.reserve(list->size());
    for (const nlohmann::json& item : *list) merges.push_back(merge(item));
    return merges;
  }

 private:
  static Config require_model(const Config& json) {
    const auto model = json.find_object("model");
    if (!model) json.refuse("model", "is missing");
    const auto type = model->find_string("type").value_or("BPE");
    if (type != "BPE") {
      model->unsupported(fmt::format("the tokenizer model '{}' is not supported, only BPE", type));
    }
    return *model;
  }

  std::size_t id_of(std::string_view text, const nlohmann::json& id) const {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= tokens_.texts.size()) {
      json_.refuse("vocab", fmt::format("gives the token '{}' the id {}; there are {}", text,
                                        id.dump(), tokens_.texts.size()));
    }
    return id.get<std::size_t>();
  }

  void place(const std::string& text, std::size_t id, TokenKind kind) {
    if (tokens_.kinds[id] != TokenKind::unused && tokens_.texts[id] != text) {
      json_.refuse("vocab",
                   fmt::format("gives '{}' and '{}' the same id {}", tokens_.texts[id], text, id));
    }
    tokens_.texts[id] = text;
    tokens_.kinds[id] = kind;
  }

  void read_added() {
    const nlohmann::json* list = json_.find("added_tokens");
    if (list == nullptr) return;
    if (!list->is_array()) json_.refuse("added_tokens", "must be a list");
    for (const nlohmann::json& item : *list) {
      const Config token(item, fmt::format("{}: added_tokens", json_.where()));
      const auto text = token.find_string("content");
      const nlohmann::json* id = token.find("id");
      if (!text || text->empty() || id == nullptr) token.refuse("content", "or 'id' is missing");
      const bool special = token.find_bool("special").value_or(false);
      place(*text, id_of(*text, *id), special ? TokenKind::control : TokenKind::user_defined);
    }
  }

  static bool is_byte(std::string_view text) {
    return text.size() == 6 && text.starts_with("<0x") && text.ends_with('>');
  }

  // "a b", or ["a", "b"].
  Merge merge(const nlohmann::json& item) const {
    if (item.is_array() && item.size() == 2 && item[0].is_string() && item[1].is_string()) {
      return {item[0].get<std::string>(), item[1].get<std::string>()};
    }
    if (item.is_string()) {
      const auto text = item.get<std::string>();
      const std::size_t space = text.find(' ');
      if (space != std::string::npos && space == text.rfind(' ')) {
        return {text.substr(0, space), text.substr(space + 1)};
      }
    }
    model_.refuse("merges", fmt::format("holds {}, which is no pair of tokens", item.dump()));
  }

  const Config& json_;
  Config model_;
  Tokens tokens_;
};

std::string pair_key(std::string_view left, std::string_view right) {
  return fmt::format("{}{}{}", left, '\0', right);
}

// SentencePiece's rule makes every token of any two that it can be cut into; a list that lacks a
// pair would not.
void require_all_merges(const Config& json, const Tokens& tokens,
                        const std::vector<Merge>& merges) {
  std::unordered_set<std::string> pairs;
  pairs.reserve(merges.size());
  for (const auto& [left, right] : merges) pairs.insert(pair_key(left, right));
  std::unordered_set<std::string_view> plain;
  for (std::size_t id = 0; id < tokens.texts.size(); ++id) {
    if (tokens.kinds[id] == TokenKind::normal) plain.insert(tokens.texts[id]);
  }
  for (const std::string_view text : plain) {
    for (std::size_t at = 1; at < text.size(); ++at) {
      const std::string_view left = text.substr(0, at);
      const std::string_view right = text.substr(at);
      if (plain.contains(left) && plain.contains(right) && !pairs.contains(pair_key(left, right))) {
        json.unsupported(fmt::format(
            "no merge makes '{}' of '{}' and '{}', but GGUF's scores would", text, left, right));
      }
    }
  }
}

// Scores from which SentencePiece's rule (merge the pair whose result scores highest) gives the
// merges in their order. There are none where a token's merges do not follow one another.
std::vector<float> scores_of(const Config& json, const Tokens& tokens,
                             const std::vector<Merge>& merges) {
  std::unordered_map<std::string, std::size_t> rank;
  std::string last;
  for (const auto& [left, right] : merges) {
    std::string whole = left + right;
    if (whole == last) continue;
    if (!rank.emplace(whole, rank.size()).second) {
      json.unsupported(
          fmt::format("the merges to '{}' do not follow one another, so that no scores stand for "
                      "their order",
                      whole));
    }
    last = std::move(whole);
  }
  std::vector<float> scores(tokens.texts.size());
  for (std::size_t id = 0; id < scores.size(); ++id) {
    const auto found = rank.find(tokens.texts[id]);
    scores[id] = -static_cast<float>(found == rank.end() ? rank.size() : found->second);
  }
  return scores;
}

std::vector<std::string> lines_of(const Config& json, const std::vector<Merge>& merges) {
  std::vector<std::string> lines;
  lines.reserve(merges.size());
  for (const auto& [left, right] : merges) {
    if (left.find(' ') != std::string::npos || right.find(' ') != std::string::npos) {
      json.refuse("merges",
                  fmt::format("holds '{}' and '{}', which GGUF can't tell apart", left, right));
    }
    lines.push_back(fmt::format("{} {}", left, right));
  }
  return lines;
}

std::vector<std::int32_t> numbers_of(const std::vector<TokenKind>& kinds) {
  std::vector<std::int32_t> numbers;
  numbers.reserve(kinds.size());
  for (const TokenKind kind : kinds) numbers.push_back(static_cast<std::int32_t>(kind));
  return numbers;
}

}  // namespace

void add_tokenizer(const ModelFolder& folder, std::uint32_t vocab, gguf::Writer& writer) {
  const std::filesystem::path path = folder.path() / "tokenizer.json";
  const nlohmann::json document = read_json(path);
  const Config json(document, path.string());
  const Splits splits = read_splits(json);
  TokenizerReader reader(json, vocab);
  const Tokens tokens = reader.read_tokens(splits.byte_level);
  const std::vector<Merge> merges = reader.read_merges();

  writer.set("tokenizer.ggml.model", std::string(splits.byte_level ? "gpt2" : "llama"));
  writer.set("tokenizer.ggml.pre", splits.pre);
  writer.set("tokenizer.ggml.tokens", tokens.texts);
  writer.set("tokenizer.ggml.token_type", numbers_of(tokens.kinds));
  if (splits.byte_level) {
    writer.set("tokenizer.ggml.merges", lines_of(json, merges));
  } else {
    require_all_merges(json, tokens, merges);
    writer.set("tokenizer.ggml.scores", scores_of(json, tokens, merges));
    writer.set("tokenizer.ggml.add_space_prefix", splits.space_prefix);
  }
  add_special_tokens(folder, json, tokens, writer);
}

}  // namespace edgerunner::convert
