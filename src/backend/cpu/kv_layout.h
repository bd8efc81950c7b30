#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/executor.h"

namespace edgerunner::cpu {

// How the keys and values of one KV head lie in a page: keys transposed, so that the scores of
// neighbouring tokens are the lanes of one vector and each is a plain sum over head_dim, in the
// same order in every kernel; values by token. The scales are q8's alone: those of the keys are
// lanes beside the scores, those of the values factors of a token's weight, so that neither costs
// anything in the sums.
//   keys         [head_dim, kPageTokens] f32, f16 or 8 bits
//   key scales   [kPageTokens] f32
//   values       [kPageTokens, value_stride]
//   value scales [kPageTokens] f32
struct KvHeadLayout {
  std::uint32_t head_dim = 0;
  KvPrecision precision = KvPrecision::f16;

  static constexpr std::uint32_t kValuePad = 16;  // lanes of the widest vector
  static constexpr std::uint32_t padded(std::uint32_t dims) {
    return (dims + kValuePad - 1) / kValuePad * kValuePad;
  }

  std::size_t element_bytes() const {
    return precision == KvPrecision::f32 ? 4 : precision == KvPrecision::f16 ? 2 : 1;
  }
  std::size_t scale_bytes() const {
    return precision == KvPrecision::q8 ? kPageTokens * sizeof(float) : 0;
  }
  std::uint32_t value_stride() const { return padded(head_dim); }  // elements; the pad holds zeros

  std::size_t key_scales() const { return std::size_t{head_dim} * kPageTokens * element_bytes(); }
  std::size_t values() const { return key_scales() + scale_bytes(); }
  std::size_t value_scales() const {
    return values() + std::size_t{value_stride()} * kPageTokens * element_bytes();
  }
  std::size_t bytes() const { return value_scales() + scale_bytes(); }  // a multiple of 64
};

}  // namespace edgerunner::cpu
