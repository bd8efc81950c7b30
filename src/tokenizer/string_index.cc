#include "tokenizer/string_index.h"

#include <bit>
#include <cstring>
#include <random>

namespace edgerunner {
namespace {

// At most half full, so that a miss ends after a slot or two.
std::size_t slots_for(std::size_t capacity) {
  return std::bit_ceil(capacity < 8 ? std::size_t{16} : capacity * 2);
}

std::uint64_t mix(std::uint64_t state, std::uint64_t word) {
  state = (state ^ word) * 0x9E3779B97F4A7C15U;
  return state ^ (state >> 29);
}

}  // namespace

std::uint64_t random_seed() {
  std::random_device device;
  return static_cast<std::uint64_t>(device()) << 32 | device();
}

std::uint64_t hash_bytes(std::string_view bytes, std::uint64_t seed) {
  std::uint64_t state = mix(seed, bytes.size());
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    state = mix(state, word);
  }
  if (at < bytes.size()) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, bytes.size() - at);
    state = mix(state, word);
  }
  return mix(state, seed);
}

void StringList::reserve(std::size_t count, std::size_t bytes) {
  offsets_.reserve(count + 1);
  bytes_.reserve(bytes);
}

void StringList::push_back(std::string_view text) {
  bytes_.append(text);
  offsets_.push_back(bytes_.size());
}

StringIndex::StringIndex(std::size_t capacity)
    : slots_(slots_for(capacity)), mask_(slots_.size() - 1), seed_(random_seed()) {}

TokenId StringIndex::insert(const StringList& strings, TokenId number) {
  const std::string_view text = strings[static_cast<std::size_t>(number)];
  const std::uint64_t hash = hash_bytes(text, seed_);
  const auto tag = static_cast<std::uint32_t>(hash >> 32);
  for (std::size_t at = hash & mask_;; at = (at + 1) & mask_) {
    Slot& slot = slots_[at];
    if (slot.number == kNoToken) {
      slot = {tag, number};
      return kNoToken;
    }
    if (slot.tag == tag && strings[static_cast<std::size_t>(slot.number)] == text) {
      return slot.number;
    }
  }
}

TokenId StringIndex::find(const StringList& strings, std::string_view text) const {
  const std::uint64_t hash = hash_bytes(text, seed_);
  const auto tag = static_cast<std::uint32_t>(hash >> 32);
  for (std::size_t at = hash & mask_;; at = (at + 1) & mask_) {
    const Slot& slot = slots_[at];
    if (slot.number == kNoToken) return kNoToken;
    if (slot.tag == tag && strings[static_cast<std::size_t>(slot.number)] == text) {
      return slot.number;
    }
  }
}

}  // namespace edgerunner
