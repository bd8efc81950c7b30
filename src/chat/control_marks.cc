#include "chat/control_marks.h"

#include <algorithm>
#include <utility>

#include "chat/output_marks.h"
#include "edgerunner/error.h"

namespace edgerunner {
namespace {

// Characters that Python prints as they are and that have no case, so that no filter changes them.
constexpr char32_t kFirstMark = 0x4E00;  // ideographs, syllables and radicals of Yi
constexpr char32_t kLastMark = 0xA4C6;

std::string utf8_of_three_bytes(char32_t c) {
  return {static_cast<char>(0xE0U | c >> 12), static_cast<char>(0x80U | (c >> 6 & 0x3FU)),
          static_cast<char>(0x80U | (c & 0x3FU))};
}

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

}  // namespace

ControlMarks::ControlMarks(const Tokenizer& tokenizer) {
  for (TokenId token = 0; static_cast<std::size_t>(token) < tokenizer.size(); ++token) {
    const bool silent = tokenizer.is_control(token) || tokenizer.token_bytes(token).empty();
    if (!silent && !tokenizer.is_end_of_generation(token)) continue;
    std::string text = tokenizer.token_bytes(token, true);
    if (text.empty()) continue;
    lengths_.insert(text.size());
    if (first_bytes_.find(text.front()) == std::string::npos) first_bytes_ += text.front();
    spellings_.insert(std::move(text));
  }
}

std::size_t ControlMarks::spelled(std::string_view text, std::size_t at) const {
  for (const std::size_t length : lengths_) {
    if (length <= text.size() - at && spellings_.contains(text.substr(at, length))) return length;
  }
  return 0;
}

bool ControlMarks::spells(const Json& value) const {
  if (value.is_string()) {
    const std::string_view text = value.get_ref<const std::string&>();
    for (std::size_t at = 0; (at = text.find_first_of(first_bytes_, at)) != text.npos; ++at) {
      if (spelled(text, at) > 0) return true;
    }
    return false;
  }
  if (!value.is_structured()) return false;
  const auto items = value.items();
  return std::any_of(items.begin(), items.end(), [this, &value](const auto& item) {
    return spells(item.value()) || (value.is_object() && spells(Json(item.key())));
  });
}

// The mark stands behind the first character of a spelling: in front of it or behind it, a template
// that cuts texts at the spelling would leave the mark beside text of its own.
std::string ControlMarks::put_into(std::string_view text, std::string_view mark,
                                   bool of_assistant) const {
  std::string marked;
  std::size_t copied = 0;
  for (std::size_t at = 0; (at = text.find_first_of(first_bytes_, at)) != text.npos; ++at) {
    const std::string_view spelling = text.substr(at, spelled(text, at));
    if (spelling.empty() || (of_assistant && (spelling == kThink || spelling == kEndThink))) {
      continue;
    }
    std::size_t end = at + 1;
    while (end < text.size() && continues_character(text[end])) ++end;
    marked.append(text.substr(copied, end - copied)).append(mark);
    copied = end;
  }
  return marked.append(text.substr(copied));
}

ControlMarks::Json ControlMarks::put(const Json& value, std::string_view mark) const {
  return put(value, mark, false);
}

ControlMarks::Json ControlMarks::put(const Json& value, std::string_view mark,
                                     bool of_assistant) const {
  if (value.is_string()) {
    return put_into(value.get_ref<const std::string&>(), mark, of_assistant);
  }
  if (value.is_array()) {
    Json list = Json::array();
    for (const Json& item : value) list.push_back(put(item, mark, of_assistant));
    return list;
  }
  if (!value.is_object()) return value;
  of_assistant = of_assistant || (value.contains("role") && value["role"] == "assistant");
  Json object = Json::object();
  for (const auto& [key, member] : value.items()) {
    object[put_into(key, mark, false)] = put(member, mark, of_assistant);
  }
  return object;
}

std::string ControlMarks::mark_for(std::string_view text) {
  for (char32_t c = kLastMark; c >= kFirstMark; --c) {
    std::string mark = utf8_of_three_bytes(c);
    if (text.find(mark) == std::string_view::npos) return mark;
  }
  throw Error(ErrorCode::invalid_argument,
              "the messages spell control tokens and have so many different characters that none "
              "is left to tell them apart by");
}

ControlMarks::Text ControlMarks::take(std::string_view rendered, std::string_view mark) {
  Text result;
  for (std::size_t at = 0; at < rendered.size();) {
    const std::size_t found = mark.empty() ? rendered.npos : rendered.find(mark, at);
    result.text += rendered.substr(at, found - at);
    if (found == rendered.npos) break;
    // The last byte of the character before.
    result.plain.push_back(result.text.empty() ? 0 : result.text.size() - 1);
    at = found + mark.size();
  }
  return result;
}

}  // namespace edgerunner
