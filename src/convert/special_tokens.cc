#include "convert/special_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/mapped_file.h"

namespace edgerunner::convert {
namespace {

nlohmann::json read_if_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) ? read_json(path) : nlohmann::json::object();
}

// Whether a post-processor's template begins or ends with a special token.
struct Surround {
  bool bos = false;
  bool eos = false;
};

void read_template(const Config& step, Surround& surround) {
  const nlohmann::json* single = step.find("single");
  if (single == nullptr || !single->is_array() || single->empty()) return;
  const auto is_special = [](const nlohmann::json& piece) {
    return piece.is_object() && piece.contains("SpecialToken");
  };
  surround.bos = surround.bos || is_special(single->front());
  surround.eos = surround.eos || is_special(single->back());
}

Surround read_surround(const Config& tokenizer) {
  Surround surround;
  const auto step = tokenizer.find_object("post_processor");
  if (!step) return surround;
  read_template(*step, surround);
  const nlohmann::json* list = step->find("processors");
  if (list == nullptr || !list->is_array()) return surround;
  for (const nlohmann::json& item : *list) {
    read_template(Config(item, step->where() + ": processors"), surround);
  }
  return surround;
}

class SpecialTokens {
 public:
  SpecialTokens(const ModelFolder& folder, const Tokens& tokens, gguf::Writer& writer)
      : folder_(folder),
        tokens_(tokens),
        writer_(writer),
        settings_json_(read_if_there(folder.path() / "tokenizer_config.json")),
        generation_json_(read_if_there(folder.path() / "generation_config.json")),
        settings_(settings_json_, (folder.path() / "tokenizer_config.json").string()),
        generation_(generation_json_, (folder.path() / "generation_config.json").string()) {}

  void add_ids(const Config& tokenizer) {
    const auto bos = id("bos_token", "bos_token_id");
    const auto eos = id("eos_token", "eos_token_id");
    set("tokenizer.ggml.bos_token_id", bos);
    set("tokenizer.ggml.eos_token_id", eos);
    set("tokenizer.ggml.padding_token_id", id("pad_token", "pad_token_id"));
    const auto model = tokenizer.find_object("model");
    if (const auto unknown = model ? model->find_string("unk_token") : std::nullopt) {
      set("tokenizer.ggml.unknown_token_id", find(*unknown));
    }
    if (eos) set("tokenizer.ggml.eot_token_id", another_end(*eos));
    const Surround surround = read_surround(tokenizer);
    const bool adds_bos = settings_.find_bool("add_bos_token").value_or(surround.bos);
    const bool adds_eos = settings_.find_bool("add_eos_token").value_or(surround.eos);
    writer_.set("tokenizer.ggml.add_bos_token", adds_bos && bos.has_value());
    writer_.set("tokenizer.ggml.add_eos_token", adds_eos && eos.has_value());
  }

  // One template, or several by name, of which "default" is the one.
  void add_templates() {
    const std::filesystem::path file = folder_.path() / "chat_template.jinja";
    std::error_code ignored;
    const nlohmann::json* value = settings_.find("chat_template");
    if (std::filesystem::exists(file, ignored)) {
      const MappedFile text(file);
      writer_.set(
          "tokenizer.chat_template",
          std::string(reinterpret_cast<const char*>(text.bytes().data()), text.bytes().size()));
    } else if (value != nullptr && value->is_array()) {
      for (const nlohmann::json& item : *value) {
        const Config named(item, settings_.where() + ": chat_template");
        const auto name = named.find_string("name");
        const auto text = named.find_string("template");
        if (!name || !text) named.refuse("name", "or 'template' is missing");
        writer_.set(*name == "default" ? "tokenizer.chat_template"
                                       : fmt::format("tokenizer.chat_template.{}", *name),
                    *text);
      }
    } else if (const auto text = settings_.find_string("chat_template")) {
      writer_.set("tokenizer.chat_template", *text);
    }
  }

 private:
  using Id = std::optional<std::uint32_t>;

  Id find(std::string_view text) const {
    const auto found = std::find(tokens_.texts.begin(), tokens_.texts.end(), text);
    if (found == tokens_.texts.end()) return std::nullopt;
    return static_cast<std::uint32_t>(found - tokens_.texts.begin());
  }

  void set(std::string_view key, Id id) {
    if (id) writer_.set(key, *id);
  }

  // Of "eos_token_id", which may be a list.
  std::vector<std::uint32_t> ids(const Config& config, std::string_view key) const {
    const nlohmann::json* value = config.find(key);
    std::vector<std::uint32_t> result;
    if (value == nullptr) return result;
    for (const nlohmann::json& id : value->is_array() ? *value : nlohmann::json::array({*value})) {
      // Some files say -1 for none.
      if (!id.is_number_integer()) config.refuse(key, "must be an id or a list of ids");
      if (!id.is_number_unsigned()) continue;
      if (id.get<std::uint64_t>() >= tokens_.texts.size()) {
        config.refuse(key, fmt::format("is {}, outside the vocabulary of {}", id.dump(),
                                       tokens_.texts.size()));
      }
      result.push_back(id.get<std::uint32_t>());
    }
    return result;
  }

  // By the text that tokenizer_config.json gives, as such or in an object, else by config.json's
  // id.
  Id id(std::string_view text_key, std::string_view id_key) const {
    const nlohmann::json* value = settings_.find(text_key);
    if (value != nullptr) {
      const auto text = value->is_object() ? settings_.find_object(text_key)->find_string("content")
                                           : settings_.find_string(text_key);
      if (const Id found = text ? find(*text) : std::nullopt) return found;
    }
    const auto listed = ids(folder_.config(), id_key);
    return listed.empty() ? std::nullopt : Id(listed.front());
  }

  // A second token that ends a generation, where the model names several.
  Id another_end(std::uint32_t eos) const {
    for (const Config& config : {generation_, folder_.config()}) {
      for (const std::uint32_t id : ids(config, "eos_token_id")) {
        if (id != eos) return id;
      }
    }
    return std::nullopt;
  }

  const ModelFolder& folder_;
  const Tokens& tokens_;
  gguf::Writer& writer_;
  nlohmann::json settings_json_;
  nlohmann::json generation_json_;
  Config settings_;
  Config generation_;
};

}  // namespace

void add_special_tokens(const ModelFolder& folder, const Config& tokenizer, const Tokens& tokens,
                        gguf::Writer& writer) {
  SpecialTokens special(folder, tokens, writer);
  special.add_ids(tokenizer);
  special.add_templates();
}

}  // namespace edgerunner::convert
