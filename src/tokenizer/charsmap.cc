#include "tokenizer/charsmap.h"

#include <fmt/format.h>

#include <algorithm>

#include "edgerunner/error.h"
#include "tokenizer/utf8.h"

namespace edgerunner {
namespace {

constexpr std::string_view kKey = "tokenizer.ggml.precompiled_charsmap";

// Children of one unit lie within a block of this many.
constexpr std::size_t kBlock = 256;

// NFKC's longest texts have 33 bytes (U+FDFA), and its longest keys fewer. A file with longer ones
// could make a short text huge or its normalisation slow.
constexpr std::size_t kLongestReplacement = 256;
constexpr std::size_t kLongestKey = 256;

// The fields of a unit. The label of a leaf has its highest bit set and so equals no byte.
constexpr std::uint32_t kLeafBit = 1U << 31;
constexpr std::uint32_t label(std::uint32_t unit) { return unit & (kLeafBit | 0xFF); }
constexpr bool has_leaf(std::uint32_t unit) { return (unit >> 8 & 1) != 0; }
constexpr std::uint32_t offset(std::uint32_t unit) { return unit >> 10 << ((unit & 1U << 9) >> 6); }

[[noreturn]] void fail(const gguf::File& file, std::string_view what,
                       ErrorCode code = ErrorCode::invalid_file) {
  throw Error(code, fmt::format("{}: {}: {}", file.name(), kKey, what));
}

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value |= static_cast<std::uint32_t>(static_cast<std::uint8_t>(bytes[i])) << (8 * i);
  }
  return value;
}

}  // namespace

Charsmap Charsmap::read(const gguf::File& file) {
  const auto numbers = file.get_ints(kKey);
  if (!numbers || numbers->empty()) return {};
  std::string bytes;
  bytes.reserve(numbers->size());
  for (const std::int64_t number : *numbers) {  // signed or not
    if (number < -128 || number > 255) fail(file, fmt::format("{} is not a byte", number));
    bytes.push_back(static_cast<char>(number));
  }
  return {file, bytes};
}

Charsmap::Charsmap(const gguf::File& file, std::string_view bytes) {
  if (bytes.size() < 4) fail(file, "it ends within its size");
  const std::uint32_t size = little_endian(bytes);
  bytes.remove_prefix(4);
  constexpr std::size_t kBlockBytes = kBlock * sizeof(std::uint32_t);
  if (size == 0 || size % kBlockBytes != 0 || size >= bytes.size()) {
    fail(file, fmt::format("its tree of {} bytes is not a part of the {} that follow, in blocks of "
                           "{}",
                           size, bytes.size(), kBlockBytes));
  }
  units_.reserve(size / 4);
  for (std::size_t at = 0; at < size; at += 4) {
    units_.push_back(little_endian(bytes.substr(at, 4)));
  }
  replacements_ = bytes.substr(size);
  if (replacements_.back() != '\0') fail(file, "its last text has no end");
  check_units(file);
}

std::uint32_t Charsmap::base(std::uint32_t index) const { return index ^ offset(units_[index]); }

std::string_view Charsmap::replacement(std::uint32_t leaf) const {
  return replacements_.data() + (units_[leaf] & ~kLeafBit);
}

void Charsmap::check_unit(const gguf::File& file, std::uint32_t index) const {
  const std::uint32_t children = base(index);
  if ((children | (kBlock - 1)) >= units_.size()) {
    fail(file, fmt::format("unit {} points at unit {} of {}", index, children, units_.size()));
  }
  if (!has_leaf(units_[index])) return;
  const std::uint32_t text = units_[children] & ~kLeafBit;
  if (text >= replacements_.size()) {
    fail(file, fmt::format("unit {} points at byte {} of the {} bytes of texts", children, text,
                           replacements_.size()));
  }
  const std::size_t length = replacements_.find('\0', text) - text;
  if (length > kLongestReplacement) {
    fail(file,
         fmt::format("the text at byte {} has {} bytes; the limit is {}", text, length,
                     kLongestReplacement),
         ErrorCode::unsupported);
  }
  const std::string_view bytes = replacement(children);
  if (valid_utf8_prefix(bytes) != bytes.size()) {
    fail(file, fmt::format("the text at byte {} is not UTF-8", text));
  }
}

// Walks every key, depth first. Keys may share their ends, so a unit that has been walked is not
// walked again.
void Charsmap::check_units(const gguf::File& file) const {
  constexpr std::uint32_t kNew = 0;
  constexpr std::uint32_t kOpen = 0xFFFFFFFF;              // on the path
  std::vector<std::uint32_t> height(units_.size(), kNew);  // of the longest key from here, plus one
  struct Step {
    std::uint32_t index;
    std::uint32_t label = 0;    // of the child looked at
    std::uint32_t tallest = 1;  // of the children that have been walked, and this one
  };
  std::vector<Step> path;
  const auto enter = [&](std::uint32_t index) {
    check_unit(file, index);
    height[index] = kOpen;
    path.push_back({index});
  };
  enter(0);
  while (!path.empty()) {
    Step& step = path.back();
    if (++step.label == kBlock) {
      const Step done = step;
      height[done.index] = done.tallest;
      path.pop_back();
      if (!path.empty()) path.back().tallest = std::max(path.back().tallest, done.tallest + 1);
      continue;
    }
    const std::uint32_t child = base(step.index) ^ step.label;
    if (label(units_[child]) != step.label) continue;
    if (height[child] == kOpen) fail(file, fmt::format("unit {} leads to itself", child));
    if (height[child] == kNew) {
      enter(child);
    } else {
      step.tallest = std::max(step.tallest, height[child] + 1);
    }
  }
  if (height[0] - 1 > kLongestKey) {
    fail(file,
         fmt::format("its keys have up to {} bytes; the limit is {}", height[0] - 1, kLongestKey),
         ErrorCode::unsupported);
  }
}

Charsmap::Rule Charsmap::find(std::string_view text) const {
  Rule rule;
  if (units_.empty()) return rule;
  std::uint32_t children = base(0);
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::uint32_t byte = static_cast<std::uint8_t>(text[at]);
    const std::uint32_t unit = children ^ byte;
    if (label(units_[unit]) != byte) break;
    children = base(unit);
    if (has_leaf(units_[unit])) rule = {at + 1, replacement(children)};
  }
  return rule;
}

}  // namespace edgerunner
