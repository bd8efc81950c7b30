#include "support/mutate.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace edgerunner::test {
namespace {

constexpr std::uint64_t kAwkward[] = {0,
                                      1,
                                      2,
                                      3,
                                      4,
                                      8,
                                      9,
                                      12,
                                      13,
                                      31,
                                      32,
                                      33,
                                      0x7F,
                                      0xFF,
                                      0xFFFF,
                                      0x7FFFFFFF,
                                      0x80000000,
                                      0xFFFFFFFF,
                                      0x100000000,
                                      (1ULL << 42) + 1,
                                      1ULL << 61,
                                      1ULL << 62,
                                      0x7FFFFFFFFFFFFFFF,
                                      1ULL << 63,
                                      ~0ULL - 31,
                                      ~0ULL};

void overwrite(std::vector<std::byte>& bytes, std::size_t at, std::uint64_t value,
               std::size_t width) {
  std::memcpy(bytes.data() + at, &value, std::min(width, bytes.size() - at));
}

void change(std::vector<std::byte>& bytes, std::size_t header, MutationRandom& random) {
  if (bytes.empty()) return;
  const std::size_t limit = random.below(8) == 0 ? bytes.size() : std::min(header, bytes.size());
  const std::size_t at = random.below(limit);
  const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  const auto piece =
      static_cast<std::ptrdiff_t>(std::min<std::size_t>(1 + random.below(24), bytes.size() - at));
  switch (random.below(12)) {
    case 0:
    case 1:
    case 2:
      *place ^= static_cast<std::byte>(1U << random.below(8));
      break;
    case 3:
    case 4:
      *place = static_cast<std::byte>(random.below(256));
      break;
    case 5:
      overwrite(bytes, at, kAwkward[random.below(std::size(kAwkward))], 4);
      break;
    case 6:
    case 7:
      overwrite(bytes, at, kAwkward[random.below(std::size(kAwkward))], 8);
      break;
    case 8: {
      const std::vector<std::byte> copied(place, place + piece);
      const std::size_t to = random.below(limit);
      std::memcpy(bytes.data() + to, copied.data(), std::min(copied.size(), bytes.size() - to));
      break;
    }
    case 9:
      bytes.erase(place, place + piece);
      break;
    case 10: {
      const std::vector<std::byte> copied(place, place + piece);
      bytes.insert(place, copied.begin(), copied.end());
      break;
    }
    default:
      if (random.below(4) == 0) bytes.resize(at);
      break;
  }
}

}  // namespace

std::vector<std::byte> mutate(const std::vector<std::byte>& bytes, std::size_t header,
                              MutationRandom& random) {
  std::vector<std::byte> mutated = bytes;
  const std::size_t changes = 1 + random.below(3);
  for (std::size_t i = 0; i < changes; ++i) change(mutated, header, random);
  mutated.shrink_to_fit();  // so that a sanitizer sees the first byte past the end
  return mutated;
}

}  // namespace edgerunner::test
