#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/executor.h"

namespace edgerunner::cpu {

// How the keys and values of one KV head lie in a page: keys transposed, so that the scores of
// neighbouring tokens are the lanes of one vector and each is a plain sum over head_dim, in the
// same order in every kernel; values by token.
//   keys   [head_dim, kPageTokens]
//   values [kPageTokens, value_stride]
struct KvHeadLayout {
  std::uint32_t head_dim = 0;
  KvPrecision precision = KvPrecision::f16;

  static constexpr std::uint32_t kValuePad = 16;  // lanes of the widest vector
  static constexpr std::uint32_t padded(std::uint32_t dims) {
    return (dims + kValuePad - 1) / kValuePad * kValuePad;
  }

  std::size_t element_bytes() const { return precision == KvPrecision::f16 ? 2 : 4; }
  std::uint32_t value_stride() const { return padded(head_dim); }  // elements; the pad holds zeros
  std::size_t key_bytes() const { return std::size_t{head_dim} * kPageTokens * element_bytes(); }
  std::size_t value_bytes() const {
    return std::size_t{value_stride()} * kPageTokens * element_bytes();
  }
  std::size_t bytes() const { return key_bytes() + value_bytes(); }  // a multiple of 64
};

}  // namespace edgerunner::cpu
