#pragma once

// The product of a single row of activations with weights in blocks of 32, two blocks of eight
// weight rows at a time. Their products are reduced to one integer a block and row, so that each
// output's sum runs over its blocks in their order with a weight row a lane, and nothing is
// transposed or stored but the sums.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/avx512/pair_formats.h"
#include "backend/cpu/kernels/avx512/row_layout.h"
#include "backend/cpu/kernels/avx512/simd.h"
#include "backend/cpu/kernels/codes.h"
#include "backend/cpu/kernels/instruction_sets.h"
#include "backend/cpu/kernels/outputs.h"
#include "backend/cpu/kernels/q8_block.h"
#include "backend/cpu/kernels/scratch.h"

namespace edgerunner::cpu {
namespace {

// As many streams of reads: sixteen save arithmetic, but weights come from memory more slowly.
inline constexpr std::uint32_t kPairRows = 8;

// A Format is one of pair_formats.h.
template <class Format>
class PairProduct {
 public:
  PairProduct(const RawProduct& product, const Scratch& scratch)
      : product_(product),
        scratch_(scratch),
        blocks_(product.cols / kQ8Length),
        pairs_((blocks_ + 1) / 2),
        x_(reinterpret_cast<Pair*>(scratch.panel)),
        terms_(reinterpret_cast<Pair*>(scratch.temporary)) {}

  // Whether there is a pair, and scratch can hold the activations.
  bool fits() const {
    return blocks_ >= 2 && pairs_ * sizeof(Pair) <= Scratch::kPanelBytes &&
           pairs_ * sizeof(Pair) <= Scratch::kTemporaryBytes;
  }

  // Whole tiles of kPairRows rows.
  void run(std::uint32_t row_begin, std::uint32_t row_end) {
    const std::size_t tile = kPairRows * product_.row_bytes;
    const std::uint8_t* weights = product_.weights + row_begin * product_.row_bytes;
    const std::uint8_t* const end = product_.weights + row_end * product_.row_bytes;
    const std::size_t first =
        tile + kFetchedEarly < kMostFetched ? tile + kFetchedEarly : kMostFetched;
    for (std::size_t i = 0; i < first; i += 64) fetch(weights + i);
    if (!scratch_.holds(product_.operand, product_.type, 1)) fill();
    for (std::uint32_t row = row_begin; row < row_end; row += kPairRows, weights += tile) {
      const std::uint8_t* ahead = weights + tile + kFetchedEarly;
      multiply_tile(weights, Ahead{ahead, end - ahead, product_.after(row_end)});
      finish<Avx512>(product_, 0, 1, row, kPairRows,
                     PanelSums{scratch_.sums, scratch_.term_sums, Avx512::kLanes}, nullptr);
    }
  }

 private:
  // Rows of a tile are read side by side, so that all of the next one has to be in the level 2
  // cache when its turn comes: it is fetched so much earlier than that, the latency of memory.
  static constexpr std::size_t kFetchedEarly = 8192;
  static constexpr std::size_t kMostFetched = 16384;  // at once, before the first tile

  // What products with fifth bits begin with is multiplied by 16 in the first lane of a quarter.
  static constexpr int kStartOffset = Format::kOffset / (Format::kFifthBits ? 16 : 1);

  static constexpr std::size_t kPairBytes = 2 * std::size_t{Format::kBlockBytes};

  // Two blocks of activations, or their second terms (q8_block.h), beside the codes of a vector.
  struct alignas(64) Pair {
    // The first and the second halves of the blocks; then beside the codes of fifth bits.
    std::int8_t q[Format::kFifthBits ? 4 : 2][64];
    std::int32_t start[16];  // undoes the codes' offset, in a lane of each quarter
    float scale[2];
    float scaled_sum[2];
    bool counted[2];  // whether the block takes part
  };

  static void fetch(const std::uint8_t* p) { __builtin_prefetch(p, 0, 2); }

  // What is fetched next: up to the end of the product, then what the thread reads after it.
  struct Ahead {
    const std::uint8_t* at;
    std::ptrdiff_t left;
    const std::uint8_t* then;

    [[gnu::always_inline]] void fetch_step() {
      if (left <= 0) {
        at = then - left;
        left = PTRDIFF_MAX;
      }
#pragma GCC unroll 8
      for (std::size_t line = 0; line < kPairRows * kPairBytes; line += 64) fetch(at + line);
      at += kPairRows * kPairBytes;
      left -= kPairRows * kPairBytes;
    }
  };

  void fill() {
    const auto* blocks = reinterpret_cast<const Q8Block*>(product_.x);
    const Q8Block* terms = q8_terms(product_.x, blocks_);
    const std::uint64_t* refined = q8_mask(product_.x, blocks_);
    for (std::uint32_t p = 0; p < pairs_; ++p) {
      // The last pair overlaps the one before it where blocks are odd in number.
      const std::uint32_t first = 2 * p + 1 == blocks_ ? blocks_ - 2 : 2 * p;
      for (std::uint32_t i = 0; i < 2; ++i) {
        const std::uint32_t b = first + i;
        const bool counted = b >= 2 * p;
        fill(blocks[b], i, counted, x_[p]);
        fill(terms[b], i, counted && (refined[b / 64] >> (b % 64) & 1) != 0, terms_[p]);
      }
    }
  }
  static void fill(const Q8Block& block, std::uint32_t i, bool counted, Pair& x) {
    x.counted[i] = counted;
    if (!counted) return;  // what its lanes hold is not used
    const auto* q = reinterpret_cast<const __m128i*>(block.q);
    const __m128i halves[2] = {_mm_loadu_si128(q), _mm_loadu_si128(q + 1)};
    for (int half = 0; half < 2; ++half) store_quarters(x.q[half] + 32 * i, halves[half]);
    if constexpr (Format::kFifthBits) {
      const __m128 first = _mm_castsi128_ps(halves[0]);
      const __m128 second = _mm_castsi128_ps(halves[1]);
      const __m128i columns = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
      const auto bits = [&](__m128 fours) {
        return _mm_shuffle_epi8(_mm_castps_si128(fours), columns);
      };
      store_quarters(x.q[2] + 32 * i, bits(_mm_shuffle_ps(first, second, 0x88)));
      store_quarters(x.q[3] + 32 * i, bits(_mm_shuffle_ps(first, second, 0xDD)));
    }
    const int sum = block.half_sum[0] + block.half_sum[1];
    store_quarters(x.start + 8 * i, _mm_cvtsi32_si128(-kStartOffset * sum));
    x.scale[i] = block.scale;
    x.scaled_sum[i] = block.scaled_sum;
  }
  // To the two quarters of a block.
  static void store_quarters(void* at, __m128i quarter) {
    auto* quarters = static_cast<__m128i*>(at);
    _mm_store_si128(quarters, quarter);
    _mm_store_si128(quarters + 1, quarter);
  }

  // By row, the first block's in the lower half.
  [[gnu::always_inline]] static __m512i dots(const __m512i* codes, const Pair& x) {
    const __m512i start =
        Format::kOffset == 0 ? _mm512_setzero_si512() : _mm512_load_si512(x.start);
    __m512i products[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      products[i] = start;
      if constexpr (Format::kFifthBits) {
        const __m512i worth = _mm512_broadcast_i32x4(_mm_setr_epi32(4, 3, 2, 1));
        products[i] = multiply_codes(products[i], codes[8 + 2 * i], x.q[2]);
        products[i] = multiply_codes(products[i], codes[9 + 2 * i], x.q[3]);
        products[i] = _mm512_sllv_epi32(products[i], worth);
      }
      products[i] = multiply_codes(products[i], codes[2 * i], x.q[0]);
      products[i] = multiply_codes(products[i], codes[2 * i + 1], x.q[1]);
    }
    return sum_quarters(products);
  }

  // Goes on with the sums of the rows by a pair.
  [[gnu::always_inline]] static __m256 add_pair(const __m512i* codes, const PairScales& scales,
                                                const Pair& x, __m256 sum) {
    const __m512 values = _mm512_mul_ps(scales.scale, _mm512_cvtepi32_ps(dots(codes, x)));
    const auto add_block = [&](int i, __m256 value, __m256 minimum) __attribute__((always_inline)) {
      if (!x.counted[i]) return;
      sum = _mm256_fmadd_ps(_mm256_set1_ps(x.scale[i]), value, sum);
      if constexpr (Format::kForm == CodeForm::minimum) {
        sum = _mm256_fmadd_ps(_mm256_set1_ps(x.scaled_sum[i]), minimum, sum);
      }
    };
    add_block(0, _mm512_castps512_ps256(values), _mm512_castps512_ps256(scales.minimum));
    add_block(1, _mm512_extractf32x8_ps(values, 1), _mm512_extractf32x8_ps(scales.minimum, 1));
    return sum;
  }

  void multiply_tile(const std::uint8_t* weights, Ahead ahead) const {
    __m256 sum = _mm256_setzero_ps();
    __m256 term_sum = _mm256_setzero_ps();
    for (std::uint32_t p = 0; p < pairs_; ++p, weights += kPairBytes) {
      ahead.fetch_step();
      if (2 * p + 1 == blocks_) weights -= Format::kBlockBytes;
      const PairOfRows<Format::kBlockBytes> rows(weights, product_.row_bytes);
      __m512i codes[Format::kFifthBits ? 16 : 8];
      Format::read_codes(rows, codes);
      const PairScales scales = Format::read_scales(rows);
      sum = add_pair(codes, scales, x_[p], sum);
      const Pair& term = terms_[p];
      if (term.counted[0] || term.counted[1]) term_sum = add_pair(codes, scales, term, term_sum);
    }
    Avx512::store(scratch_.sums, _mm512_zextps256_ps512(sum));
    Avx512::store(scratch_.term_sums, _mm512_zextps256_ps512(term_sum));
  }

  const RawProduct& product_;
  const Scratch& scratch_;
  std::uint32_t blocks_;
  std::uint32_t pairs_;
  Pair* x_;      // [pairs]
  Pair* terms_;  // [pairs]
};

// Multiplies a single row of activations with whole tiles of kPairRows weight rows; false where
// another kernel has to.
template <class Format>
bool multiply_by_pairs(const RawProduct& product, std::uint32_t row_begin, std::uint32_t row_end,
                       const Scratch& scratch) {
  PairProduct<Format> pairs(product, scratch);
  if (product.tokens != 1 || !pairs.fits()) return false;
  pairs.run(row_begin, row_end);
  return true;
}

}  // namespace
}  // namespace edgerunner::cpu
