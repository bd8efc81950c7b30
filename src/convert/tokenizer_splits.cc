#include "convert/tokenizer_splits.h"

#include <fmt/format.h>

#include <vector>

#include "tokenizer/pre_tokenizer.h"

namespace edgerunner::convert {
namespace {

constexpr std::string_view kMark = "\xE2\x96\x81";  // U+2581, SentencePiece's space

std::string type_of(const Config& step) { return step.find_string("type").value_or(""); }

// The steps of a normaliser or pre-tokenizer: those of a Sequence, itself, or none.
std::vector<Config> steps_of(const Config& tokenizer, std::string_view key, std::string_view list) {
  const auto step = tokenizer.find_object(key);
  if (!step) return {};
  if (type_of(*step) != "Sequence") return {*step};
  const nlohmann::json* items = step->find(list);
  if (items == nullptr || !items->is_array()) step->refuse(list, "must be a list");
  std::vector<Config> steps;
  for (const nlohmann::json& item : *items) {
    steps.emplace_back(item, fmt::format("{}: {}", step->where(), list));
  }
  return steps;
}

[[noreturn]] void unknown(const Config& step) {
  step.unsupported(
      fmt::format("the step '{}' as it stands there has no name in GGUF", type_of(step)));
}

// The expression of a Split that keeps both what matches and what lies between.
std::string expression_of(const Config& step) {
  const auto behavior = step.find_string("behavior").value_or("");
  const bool inverted = step.find_bool("invert").value_or(false);
  const auto pattern = step.find_object("pattern");
  if (!pattern || !(inverted ? behavior == "Removed" : behavior == "Isolated")) unknown(step);
  const auto expression = pattern->find_string("Regex");
  if (!expression) unknown(step);
  return *expression;
}

Splits read_byte_level(const Config& tokenizer, const std::vector<Config>& normalisers,
                       const std::vector<Config>& steps) {
  PublishedStages published;
  for (const Config& step : normalisers) {
    if (type_of(step) != "NFC") unknown(step);
    published.normalizes = true;
  }
  for (const Config& step : steps) {
    const std::string type = type_of(step);
    if (type == "Split") {
      published.stages.push_back(expression_of(step));
    } else if (type == "Digits" && step.find_bool("individual_digits").value_or(false)) {
      published.stages.emplace_back("Digits");
    } else if (type == "ByteLevel" && !step.find_bool("add_prefix_space").value_or(true)) {
      if (step.find_bool("use_regex").value_or(true)) published.stages.emplace_back("ByteLevel");
    } else {
      unknown(step);
    }
  }
  if (const auto model = tokenizer.find_object("model")) {
    published.ignores_merges = model->find_bool("ignore_merges").value_or(false);
  }
  const auto name = pre_tokenizer_name(published);
  if (!name) {
    tokenizer.unsupported(
        fmt::format("its pre-tokenizer has no name in GGUF that EdgeRunner knows (expressions: {})",
                    nlohmann::json(published.stages).dump()));
  }
  return {true, std::string(*name), false};
}

// SentencePiece's marks for spaces: by normalisers, or by a Metaspace.
Splits read_marks(const Config& tokenizer, const std::vector<Config>& normalisers,
                  const std::vector<Config>& steps) {
  Splits splits{false, "default", false};
  bool marks = false;
  for (const Config& step : normalisers) {
    const auto pattern = step.find_object("pattern");
    if (type_of(step) == "Prepend" && step.find_string("prepend") == kMark) {
      splits.space_prefix = true;
    } else if (type_of(step) == "Replace" && pattern && pattern->find_string("String") == " " &&
               step.find_string("content") == kMark) {
      marks = true;
    } else {
      unknown(step);
    }
  }
  for (const Config& step : steps) {
    const auto pattern = step.find_object("pattern");
    if (type_of(step) == "Metaspace" && step.find_string("replacement") == kMark &&
        !step.find_bool("split").value_or(true)) {
      const auto scheme = step.find_string("prepend_scheme").value_or("always");
      splits.space_prefix = splits.space_prefix || scheme != "never";
      marks = true;
    } else if (!(type_of(step) == "Split" && pattern && pattern->find_string("String") == " ")) {
      // After the normaliser no space is left for a Split to find.
      unknown(step);
    }
  }
  if (!marks) tokenizer.unsupported("spaces are not marked in a way that GGUF has a name for");
  return splits;
}

}  // namespace

Splits read_splits(const Config& tokenizer) {
  const auto normalisers = steps_of(tokenizer, "normalizer", "normalizers");
  const auto steps = steps_of(tokenizer, "pre_tokenizer", "pretokenizers");
  for (const Config& step : steps) {
    if (type_of(step) == "ByteLevel") return read_byte_level(tokenizer, normalisers, steps);
  }
  return read_marks(tokenizer, normalisers, steps);
}

}  // namespace edgerunner::convert
