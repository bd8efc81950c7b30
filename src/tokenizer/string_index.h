#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "edgerunner/types.h"

namespace edgerunner {

// Strings one after another in one allocation: 150,000 tokens are two blocks of memory.
class StringList {
 public:
  void reserve(std::size_t count, std::size_t bytes);
  void push_back(std::string_view text);
  std::size_t size() const { return offsets_.size() - 1; }
  std::string_view operator[](std::size_t i) const {
    return {bytes_.data() + offsets_[i], static_cast<std::size_t>(offsets_[i + 1] - offsets_[i])};
  }

 private:
  std::string bytes_;
  std::vector<std::uint64_t> offsets_{0};
};

// From a string of a StringList to its number. Open addressing over (hash tag, number); the seed is
// drawn anew for every index, so that a hostile file can't choose strings that all collide.
class StringIndex {
 public:
  explicit StringIndex(std::size_t capacity);

  // Gives the number already there where the string is known, else kNoToken after adding it.
  TokenId insert(const StringList& strings, TokenId number);
  TokenId find(const StringList& strings, std::string_view text) const;

 private:
  struct Slot {
    std::uint32_t tag = 0;
    TokenId number = kNoToken;
  };
  std::vector<Slot> slots_;
  std::size_t mask_;
  std::uint64_t seed_;
};

// A 64-bit hash of bytes; equal seeds give equal hashes.
std::uint64_t hash_bytes(std::string_view bytes, std::uint64_t seed);

// A random 64-bit number for hash tables that hold what a file says.
std::uint64_t random_seed();

}  // namespace edgerunner
