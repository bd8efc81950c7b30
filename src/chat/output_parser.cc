#include "chat/output_parser.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "chat/call_scanner.h"
#include "chat/output_marks.h"

namespace edgerunner {
namespace {

constexpr auto kNone = std::string_view::npos;
constexpr std::string_view kSpace = " \t\r\n";

bool contains(std::string_view text, std::string_view part) { return text.find(part) != kNone; }

bool is_blank(std::string_view text) { return text.find_first_not_of(kSpace) == kNone; }

// The longest end of `text` that a mark may begin with.
std::size_t held_back(std::string_view text, std::string_view mark) {
  for (std::size_t length = std::min(text.size(), mark.size() - 1); length > 0; --length) {
    if (mark.starts_with(text.substr(text.size() - length))) return length;
  }
  return 0;
}

}  // namespace

OutputFormat detect_output_format(std::string_view template_source,
                                  std::string_view rendered_prompt, bool with_tools) {
  OutputFormat format;
  format.reasoning = contains(template_source, kEndThink) || contains(template_source, kThink);
  const std::size_t last = rendered_prompt.find_last_not_of(kSpace);
  const std::string_view end = rendered_prompt.substr(0, last == kNone ? 0 : last + 1);
  format.starts_in_reasoning = end.ends_with(kThink);
  format.reasoning = format.reasoning || format.starts_in_reasoning;
  if (!with_tools) return format;
  if (contains(template_source, kToolCall)) {
    format.tool_calls = ToolCallFormat::hermes;
  } else if (contains(template_source, kToolCalls)) {
    format.tool_calls = ToolCallFormat::mistral;
    format.args_mark = contains(template_source, kArgs);
  } else if (contains(template_source, kPythonTag) ||
             contains(template_source, "<|start_header_id|>")) {
    format.tool_calls = ToolCallFormat::llama3;
  }
  return format;
}

std::vector<TokenId> marker_tokens(const Tokenizer& tokenizer, const OutputFormat& format) {
  std::vector<std::string_view> marks;
  if (format.reasoning) marks.insert(marks.end(), {kThink, kEndThink});
  switch (format.tool_calls) {
    case ToolCallFormat::none:
      break;
    case ToolCallFormat::hermes:
      marks.insert(marks.end(), {kToolCall, kEndToolCall});
      break;
    case ToolCallFormat::llama3:
      marks.push_back(kPythonTag);
      break;
    case ToolCallFormat::mistral:
      marks.insert(marks.end(), {kToolCalls, kArgs});
      break;
  }
  std::vector<TokenId> tokens;
  for (const std::string_view mark : marks) {
    const TokenId token = tokenizer.find(mark);
    if (token != kNoToken && tokenizer.is_control(token)) tokens.push_back(token);
  }
  return tokens;
}

class OutputParser::Impl {
 public:
  explicit Impl(const OutputFormat& format)
      : format_(format),
        place_(format.starts_in_reasoning ? Place::reasoning
               : format.reasoning         ? Place::start
                                          : Place::content) {}

  OutputDelta push(std::string_view piece) {
    pending_ += piece;
    run(false);
    return std::exchange(delta_, {});
  }

  OutputDelta finish() {
    run(true);
    if (place_ == Place::call || place_ == Place::call_name) give_up();
    const std::string rest = std::exchange(held_, {}) + std::exchange(pending_, {});
    const bool behind_mark = place_ == Place::after_call || (after_mark_ && !content_begun_);
    if (place_ == Place::reasoning) {
      if (!is_blank(rest)) delta_.reasoning += rest;
    } else if (place_ != Place::after_call && !(behind_mark && is_blank(rest))) {
      emit(rest);
    }
    return std::exchange(delta_, {});
  }

  std::size_t tool_calls() const { return calls_; }
  bool is_reasoning() const { return place_ == Place::reasoning; }

 private:
  enum class Place : std::uint8_t {
    start,  // nothing but blank space yet, and <think> may come
    reasoning,
    content,
    call,        // within a call
    call_name,   // Mistral: a name stands before the arguments
    after_call,  // up to the closing mark, or the next call
  };

  void run(bool ended) {
    while (step(ended)) {
    }
  }

  // Goes on by one place; false where more text is needed first.
  bool step(bool ended) {
    switch (place_) {
      case Place::start:
        return at_start(ended);
      case Place::reasoning:
        return in_reasoning();
      case Place::content:
        return in_content(ended);
      case Place::call:
        return in_call();
      case Place::call_name:
        return in_call_name();
      case Place::after_call:
        return after_call();
    }
    return false;
  }

  void drop_space() {
    pending_.erase(0, std::min(pending_.find_first_not_of(kSpace), pending_.size()));
  }

  bool at_start(bool ended) {
    const std::size_t begin = pending_.find_first_not_of(kSpace);
    const std::string_view text =
        std::string_view(pending_).substr(begin == kNone ? pending_.size() : begin);
    if (text.starts_with(kThink)) {
      pending_.erase(0, begin + kThink.size());
      place_ = Place::reasoning;
      return true;
    }
    if (!ended && kThink.starts_with(text)) return false;
    place_ = Place::content;
    return true;
  }

  // Text goes out up to its last visible character: blank space waits for what follows it, since it
  // is dropped before a mark.
  void emit_visible(std::string& out, std::string_view text, bool& begun) {
    held_ += text;
    if (!begun) held_.erase(0, std::min(held_.find_first_not_of(kSpace), held_.size()));
    const std::size_t last = held_.find_last_not_of(kSpace);
    if (last == kNone) return;
    begun = true;
    out += held_.substr(0, last + 1);
    held_.erase(0, last + 1);
  }

  // Text up to the mark goes out; whether the mark was there, and taken.
  bool take_until(std::string_view mark, std::string& out, bool& begun) {
    const std::size_t found = pending_.find(mark);
    const std::size_t end = found == kNone ? pending_.size() - held_back(pending_, mark) : found;
    emit_visible(out, std::string_view(pending_).substr(0, end), begun);
    pending_.erase(0, found == kNone ? end : end + mark.size());
    if (found != kNone) held_.clear();
    return found != kNone;
  }

  bool in_reasoning() {
    if (!take_until(kEndThink, delta_.reasoning, reasoning_begun_)) return false;
    place_ = Place::content;
    after_mark_ = true;
    return true;
  }

  bool in_content(bool ended) {
    if (after_mark_ && !content_begun_) {
      drop_space();
      if (pending_.empty()) return false;
    }
    switch (format_.tool_calls) {
      case ToolCallFormat::none:
        emit(std::exchange(pending_, {}));
        return false;
      case ToolCallFormat::llama3:
        return llama_content(ended);
      default:
        break;
    }
    const std::string_view mark =
        format_.tool_calls == ToolCallFormat::hermes ? kToolCall : kToolCalls;
    bool begun = content_begun_ || !after_mark_;
    const bool found = take_until(mark, delta_.content, begun);
    content_begun_ = begun;
    if (!found) return false;
    mark_ = mark;
    begin_call();
    return true;
  }

  // Llama's calls are the whole answer: what begins otherwise has none.
  bool llama_content(bool ended) {
    if (content_begun_) {
      emit(std::exchange(pending_, {}));
      return false;
    }
    drop_space();
    const std::string_view text = pending_;
    if (text.empty() ||
        (!ended && text.size() < kPythonTag.size() && kPythonTag.starts_with(text))) {
      return false;
    }
    const bool tagged = text.starts_with(kPythonTag);
    if (!tagged && text.front() != '{') {
      emit(std::exchange(pending_, {}));
      return false;
    }
    mark_ = tagged ? kPythonTag : std::string_view();
    pending_.erase(0, mark_.size());
    begin_call();
    return true;
  }

  void begin_call() {
    scanner_.emplace();
    raw_.clear();
    told_ = false;
    array_ = false;
    place_ = format_.tool_calls == ToolCallFormat::mistral ? Place::call_name : Place::call;
  }

  // Behind [TOOL_CALLS]: an array of calls, a call, or a name and its arguments.
  bool in_call_name() {
    drop_space();
    if (pending_.empty()) return false;
    if (pending_.front() == '[' && !pending_.starts_with(kArgs)) {
      pending_.erase(0, 1);
      raw_ += '[';
      array_ = true;
      place_ = Place::call;
      return true;
    }
    if (pending_.front() == '{') {
      place_ = Place::call;
      return true;
    }
    const std::size_t brace = pending_.find('{');
    if (brace == kNone) return false;
    std::string name = pending_.substr(0, std::min(pending_.find('['), brace));
    name.erase(std::min(name.find_last_not_of(kSpace) + 1, name.size()));
    scanner_.emplace(std::move(name));
    raw_ += pending_.substr(0, brace);
    pending_.erase(0, brace);
    place_ = Place::call;
    return true;
  }

  bool in_call() {
    std::size_t used = 0;
    CallScanner::State state = CallScanner::State::more;
    while (used < pending_.size() && state == CallScanner::State::more) {
      state = scanner_->push(pending_[used++]);
    }
    raw_ += pending_.substr(0, used);
    pending_.erase(0, used);
    if (scanner_->is_call()) tell();
    if (state == CallScanner::State::more) return false;
    if (state == CallScanner::State::broken && !told_) {
      give_up();
      return true;
    }
    place_ = Place::after_call;
    after_mark_ = true;
    content_begun_ = false;
    return true;
  }

  void tell() {
    ToolCallDelta delta;
    if (!told_) {
      told_ = true;
      delta.name = scanner_->name();
      ++calls_;
    }
    delta.index = calls_ - 1;
    delta.arguments = scanner_->take_arguments();
    if (delta.name.empty() && delta.arguments.empty()) return;
    if (!delta_.tool_calls.empty() && delta_.tool_calls.back().index == delta.index) {
      delta_.tool_calls.back().arguments += delta.arguments;
    } else {
      delta_.tool_calls.push_back(std::move(delta));
    }
  }

  // It was no call: its text is content after all, and nothing after it is looked at again.
  void give_up() {
    if (!told_) {
      emit(std::string(mark_) + raw_);
      content_begun_ = true;
    }
    scanner_.reset();
    place_ = Place::content;
  }

  bool after_call() {
    drop_space();
    if (pending_.empty()) return false;
    const std::string_view text = pending_;
    if (format_.tool_calls == ToolCallFormat::hermes) {
      if (text.size() < kEndToolCall.size() && kEndToolCall.starts_with(text)) return false;
      if (text.starts_with(kEndToolCall)) pending_.erase(0, kEndToolCall.size());
      place_ = Place::content;
      return true;
    }
    if (text.front() == ',' || text.front() == ';') {
      pending_.erase(0, 1);
      scanner_.emplace();
      raw_.clear();
      told_ = false;
      mark_ = {};
      place_ = Place::call;
      return true;
    }
    if (array_ && text.front() == ']') pending_.erase(0, 1);
    array_ = false;
    place_ = Place::content;
    return true;
  }

  void emit(const std::string& content) {
    if (content.empty()) return;
    delta_.content += content;
    content_begun_ = true;
  }

  OutputFormat format_;
  Place place_;
  std::string pending_;  // not looked at yet
  std::string held_;     // blank space that waits for what follows
  OutputDelta delta_;
  bool reasoning_begun_ = false;
  bool content_begun_ = false;
  bool after_mark_ = false;  // blank space in front of content is dropped
  std::optional<CallScanner> scanner_;
  std::string_view mark_;  // that began the call
  std::string raw_;        // of the call, behind the mark
  bool array_ = false;     // of calls
  bool told_ = false;      // the call has been reported
  std::size_t calls_ = 0;
};

OutputParser::OutputParser(const OutputFormat& format) : impl_(std::make_unique<Impl>(format)) {}
OutputParser::~OutputParser() = default;
OutputParser::OutputParser(OutputParser&&) noexcept = default;
OutputParser& OutputParser::operator=(OutputParser&&) noexcept = default;

OutputDelta OutputParser::push(std::string_view piece) { return impl_->push(piece); }
OutputDelta OutputParser::finish() { return impl_->finish(); }
std::size_t OutputParser::tool_calls() const { return impl_->tool_calls(); }
bool OutputParser::in_reasoning() const { return impl_->is_reasoning(); }

std::size_t reasoning_tokens(const Tokenizer& tokenizer, const OutputFormat& format,
                             std::span<const TokenId> tokens) {
  if (!format.reasoning) return 0;
  const std::vector<TokenId> marks = marker_tokens(tokenizer, format);
  OutputParser parser(format);
  std::size_t count = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const bool before = parser.in_reasoning();
    const bool visible = std::find(marks.begin(), marks.end(), tokens[i]) != marks.end();
    parser.push(tokenizer.token_bytes(tokens[i], visible));
    if (before || parser.in_reasoning()) count = i + 1;
  }
  return count;
}

}  // namespace edgerunner
