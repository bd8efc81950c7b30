#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "chat/jinja/compare.h"
#include "chat/jinja/heap.h"
#include "chat/jinja/text.h"
#include "chat/jinja/unicode.h"

namespace edgerunner::jinja {
namespace {

class JsonWriter {
 public:
  JsonWriter(Budget& budget, const JsonStyle& style) : budget_(budget), style_(style) {}
  ~JsonWriter() { budget_.give_back(counted_); }
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  std::string take() { return std::move(out_); }

  void write(const Value& value, std::size_t depth) {
    if (depth > static_cast<std::size_t>(kMostValueNesting)) {
      fail("a value is nested too deeply for JSON");
    }
    budget_.step();
    count();
    switch (value.kind()) {
      case Kind::none:
        out_ += "null";
        return;
      case Kind::boolean:
        out_ += value.as_bool() ? "true" : "false";
        return;
      case Kind::integer:
        out_ += fmt::to_string(value.as_integer());
        return;
      case Kind::floating:
        out_ += number(value.as_double());
        return;
      case Kind::string:
        return string(value.as_string());
      case Kind::list:
      case Kind::tuple:
        return list(value.items(), depth);
      case Kind::dict:
        return dict(*value.as<Dict>(), depth);
      default:
        fail(fmt::format("a value of type '{}' can't be written as JSON", type_name(value)));
    }
  }

 private:
  void count() {
    if (out_.size() <= counted_) return;
    budget_.take(out_.size() - counted_);
    counted_ = out_.size();
  }

  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return float_text(value);
  }

  void string(std::string_view text) {
    out_ += '"';
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint c = code_point_at(text, at);
      character(c.value, text.substr(at, c.length));
      at += c.length;
    }
    out_ += '"';
  }

  void character(char32_t c, std::string_view bytes) {
    constexpr std::string_view kShort = "\"\\\n\r\t\f\b";
    constexpr std::string_view kLetters = "\"\\nrtfb";
    const std::size_t index = c < 0x80 ? kShort.find(static_cast<char>(c)) : kShort.npos;
    if (index != kShort.npos) {
      out_ += '\\';
      out_ += kLetters[index];
    } else if (c >= 0x20 && (!style_.ensure_ascii || c < 0x7F)) {
      out_ += bytes;
    } else if (c < 0x10000) {
      out_ += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {  // a surrogate pair
      const auto rest = static_cast<unsigned>(c) - 0x10000;
      out_ += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF));
    }
  }

  void new_line(std::size_t depth) {
    if (!style_.indented) return;
    budget_.take(depth * style_.indent.size());
    counted_ += depth * style_.indent.size();
    out_ += '\n';
    for (std::size_t i = 0; i < depth; ++i) out_ += style_.indent;
  }

  void list(std::span<const Value> items, std::size_t depth) {
    out_ += '[';
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      new_line(depth + 1);
      write(items[i], depth + 1);
    }
    if (!items.empty()) new_line(depth);
    out_ += ']';
  }

  void key(const Value& value) {
    switch (value.kind()) {
      case Kind::string:
        return string(value.as_string());
      case Kind::none:
        return string("null");
      case Kind::boolean:
        return string(value.as_bool() ? "true" : "false");
      case Kind::integer:
        return string(fmt::to_string(value.as_integer()));
      case Kind::floating:
        return string(number(value.as_double()));
      default:
        fail(fmt::format("a value of type '{}' can't be a key in JSON", type_name(value)));
    }
  }

  void dict(const Dict& value, std::size_t depth) {
    std::vector<const Dict::Entry*> order(value.size);
    for (std::size_t i = 0; i < value.size; ++i) order[i] = value.entries + i;
    if (style_.sort_keys) {
      std::stable_sort(order.begin(), order.end(), [this](const auto* a, const auto* b) {
        return less(budget_, a->key, b->key);
      });
    }
    out_ += '{';
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      new_line(depth + 1);
      key(order[i]->key);
      out_ += style_.key_separator;
      write(order[i]->value, depth + 1);
    }
    if (value.size > 0) new_line(depth);
    out_ += '}';
  }

  Budget& budget_;
  const JsonStyle& style_;
  std::string out_;
  std::size_t counted_ = 0;
};

}  // namespace

std::string to_json(Budget& budget, const Value& value, const JsonStyle& style) {
  JsonWriter writer(budget, style);
  writer.write(value, 0);
  return writer.take();
}

}  // namespace edgerunner::jinja
