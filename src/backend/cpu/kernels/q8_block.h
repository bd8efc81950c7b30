#pragma once

#include <cstddef>
#include <cstdint>

namespace edgerunner::cpu {

// What is added to a signed weight to make its code unsigned.
inline constexpr int kCodeOffset = 128;

// 32 activations of a row in ActivationFormat::q8, with all that a product needs of them beside its
// weights, so that a kernel reads one stream. x[i] is about scale * q[i].
//
// scale = max|x| / 127 and q[i] = x[i] * (127 / max|x|) rounded to nearest, ties to even, so that
// |x[i] - scale * q[i]| <= scale * (1/2 + 2^-16). A block whose largest magnitude is below
// kSmallestMagnitude counts as zeros: its reciprocal would not be finite. A block that holds an
// infinity or a NaN has scale NaN, so that every output that it enters is NaN.
struct Q8Block {
  std::int8_t q[32];
  float scale;
  float scaled_sum;          // scale * sum of q: what a weight's constant term is multiplied with
  std::int32_t start;        // -kCodeOffset * sum of q: undoes the offset of signed weights' codes
  std::int16_t half_sum[2];  // sums of q[0, 16) and q[16, 32)
};
static_assert(sizeof(Q8Block) == 48);

inline constexpr int kQ8Length = 32;
inline constexpr float kSmallestMagnitude = 0x1p-118F;

// A prepared row is its blocks, then second terms for some of them:
//   Q8Block       block[n]
//   std::uint64_t refined[q8_mask_words(n)]  bit b % 64 of word b / 64: block b has a second term
//   Q8Block       term[n]                    written where there is one
// A second term is the block of x[i] - scale * q[i] (one rounding), so that x[i] is about
// scale * q[i] + term.scale * term.q[i] and the error at most (1/2 + 2^-16) * term.scale, which is
// scale / 253 or less.
constexpr std::uint32_t q8_blocks(std::uint32_t cols) { return (cols + kQ8Length - 1) / kQ8Length; }
constexpr std::uint32_t q8_mask_words(std::uint32_t blocks) { return (blocks + 63) / 64; }
constexpr std::size_t q8_mask_offset(std::uint32_t blocks) { return blocks * sizeof(Q8Block); }
constexpr std::size_t q8_terms_offset(std::uint32_t blocks) {
  return q8_mask_offset(blocks) + q8_mask_words(blocks) * sizeof(std::uint64_t);
}
constexpr std::size_t q8_row_bytes(std::uint32_t blocks) {
  return q8_terms_offset(blocks) + blocks * sizeof(Q8Block);
}

// Of internal linkage, so that each instruction set has its own.
namespace {

inline const std::uint64_t* q8_mask(const std::byte* row, std::uint32_t blocks) {
  return reinterpret_cast<const std::uint64_t*>(row + q8_mask_offset(blocks));
}
inline const Q8Block* q8_terms(const std::byte* row, std::uint32_t blocks) {
  return reinterpret_cast<const Q8Block*>(row + q8_terms_offset(blocks));
}

// Calls visit(b, term) for each second term of a row, in ascending order of the blocks b.
template <class Visit>
inline void for_each_term(const std::byte* row, std::uint32_t blocks, Visit visit) {
  const std::uint64_t* mask = q8_mask(row, blocks);
  const Q8Block* terms = q8_terms(row, blocks);
  for (std::uint32_t word = 0; word < q8_mask_words(blocks); ++word) {
    for (std::uint64_t bits = mask[word]; bits != 0; bits &= bits - 1) {
      const std::uint32_t b = 64 * word + static_cast<std::uint32_t>(__builtin_ctzll(bits));
      visit(b, terms[b]);
    }
  }
}

}  // namespace
}  // namespace edgerunner::cpu
