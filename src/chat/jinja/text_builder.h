#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "chat/jinja/heap.h"

namespace edgerunner::jinja {

// A text that grows within the rendering's budget.
class TextBuilder {
 public:
  explicit TextBuilder(Heap& heap) : heap_(heap) {}
  ~TextBuilder() { heap_.budget().give_back(counted_); }
  TextBuilder(const TextBuilder&) = delete;
  TextBuilder& operator=(const TextBuilder&) = delete;

  TextBuilder& operator+=(std::string_view text) {
    count(text.size());
    text_ += text;
    return *this;
  }
  void repeat(std::string_view text, std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) *this += text;
  }
  bool empty() const { return text_.empty(); }
  std::size_t size() const { return text_.size(); }
  const std::string& text() const { return text_; }
  Value value(bool markup = false) { return heap_.string(text_, markup); }

 private:
  void count(std::size_t bytes) {
    heap_.budget().step(1 + bytes / 64);
    heap_.budget().take(bytes);
    counted_ += bytes;
  }

  Heap& heap_;
  std::string text_;
  std::size_t counted_ = 0;
};

}  // namespace edgerunner::jinja
