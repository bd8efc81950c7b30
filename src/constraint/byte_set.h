#pragma once

#include <bitset>

namespace edgerunner {

using ByteSet = std::bitset<256>;

inline ByteSet byte_range(unsigned first, unsigned last) {
  ByteSet set;
  for (unsigned byte = first; byte <= last; ++byte) set.set(byte);
  return set;
}

inline ByteSet one_byte(char c) {
  ByteSet set;
  set.set(static_cast<unsigned char>(c));
  return set;
}

}  // namespace edgerunner
