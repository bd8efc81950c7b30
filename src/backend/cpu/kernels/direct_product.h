#pragma once

// The product of a few rows of activations with weights that are transposed in registers: a block
// of S::kLanes weight rows becomes vectors with a weight row a lane, and is multiplied at once with
// up to kDirectRows rows of activations, whose sums stay in registers too. So weights are read from
// memory all the while, where panels (panel_product.h) read while they are unpacked and let memory
// wait while they are multiplied. Written once over the formats, for vectors of 16 lanes and 32
// registers; included by the translation unit of their instruction set.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/codes.h"
#include "backend/cpu/kernels/direct_format.h"
#include "backend/cpu/kernels/instruction_sets.h"
#include "backend/cpu/kernels/outputs.h"
#include "backend/cpu/kernels/q8_block.h"
#include "backend/cpu/kernels/scratch.h"
#include "backend/cpu/kernels/unpack_blocks32.h"

namespace edgerunner::cpu {
namespace {

// Rows of activations at a time: as many sums, as many products and the eight vectors of codes fit
// 32 registers.
inline constexpr std::uint32_t kDirectRows = 8;

// A Format is one of direct_format.h.
template <class Format>
class DirectProduct {
 public:
  using S = typename Format::S;
  using F = typename S::F;
  using I = typename S::I;

  DirectProduct(const RawProduct& product, const Scratch& scratch)
      : product_(product),
        scratch_(scratch),
        steps_(product.cols / kQ8Length),
        groups_((product.tokens + kDirectRows - 1) / kDirectRows),
        blocks_(reinterpret_cast<Q8Block*>(scratch.panel)),
        terms_(reinterpret_cast<Q8Block*>(scratch.temporary)),
        terms_of_(reinterpret_cast<Terms*>(scratch.step_masks)),
        sums_(scratch.sums),
        term_sums_(scratch.term_sums) {}

  // Whether scratch can hold the activations.
  bool fits() const {
    return std::size_t{steps_} * product_.tokens * sizeof(Q8Block) <= Scratch::kPanelBytes;
  }

  // Whole panels of rows.
  void run(std::uint32_t row_begin, std::uint32_t row_end) {
    const std::uint8_t* weights = product_.weights + row_begin * product_.row_bytes;
    const std::size_t panel = S::kLanes * product_.row_bytes;
    for (std::size_t i = 0; i < panel && i < kFetchedEarly; i += 64) {
      __builtin_prefetch(weights + i, 0, 2);
    }
    if (!scratch_.holds(product_.operand, product_.type, product_.tokens)) {
      *scratch_.masked = {};
      for (std::uint32_t g = 0, terms = 0; g < groups_; ++g) fill(g, terms);
    }
    for (std::uint32_t row = row_begin; row < row_end; row += S::kLanes, weights += panel) {
      const std::uint8_t* ahead =
          row + S::kLanes < row_end ? weights + panel : product_.after(row_end);
      for (std::uint32_t g = 0; g < groups_; ++g) multiply_rows(weights, ahead, g);
      finish<S>(product_, 0, product_.tokens, row, S::kLanes,
                PanelSums{sums_, term_sums_, S::kLanes}, nullptr);
    }
  }

 private:
  // What is fetched into the level 2 cache before it is wanted in level 1, and of the first rows
  // before the activations are laid out: a few times what arrives in the latency of memory.
  static constexpr std::size_t kFetchedEarly = 8192;

  // The second terms of a step of the columns.
  struct Terms {
    std::uint32_t first;   // in terms_
    std::uint32_t tokens;  // a bit for each row of the group that has one
  };
  static_assert(kDirectTokens / kDirectRows * sizeof(Terms) <= Scratch::kStepBytes);

  // Rows of activations of a group, all nearly as many.
  std::uint32_t first_token(std::uint32_t group) const { return product_.tokens * group / groups_; }

  // `start` undoes the offset of the format's codes; where halves have scales of their own, theirs
  // stand in the last two words.
  static Q8Block adapted(const Q8Block& from) {
    Q8Block block = from;
    if constexpr (Format::kForm == CodeForm::half_scales) {
      const std::int32_t starts[2] = {-Format::kOffset * from.half_sum[0],
                                      -Format::kOffset * from.half_sum[1]};
      static_assert(offsetof(Q8Block, half_sum) == offsetof(Q8Block, start) + 4);
      __builtin_memcpy(&block.start, starts, sizeof starts);
    } else if constexpr (Format::kOffset != 0) {
      block.start /= kCodeOffset / Format::kOffset;
    }
    return block;
  }

  // Lays out a group's activations, step after step.
  void fill(std::uint32_t group, std::uint32_t& term) {
    const std::uint32_t first = first_token(group);
    const std::uint32_t tokens = first_token(group + 1) - first;
    Q8Block* blocks = blocks_ + std::size_t{first} * steps_;
    Terms* terms_of = terms_of_ + std::size_t{group} * steps_;
    __builtin_memset(terms_of, 0, steps_ * sizeof(Terms));
    const std::byte* rows[kDirectRows];
    for (std::uint32_t t = 0; t < tokens; ++t) {
      rows[t] = product_.x + (first + t) * product_.x_stride;
      const auto* from = reinterpret_cast<const Q8Block*>(rows[t]);
      for (std::uint32_t i = 0; i < steps_; ++i) blocks[i * tokens + t] = adapted(from[i]);
      for_each_term(rows[t], steps_,
                    [&](std::uint32_t i, const Q8Block&) { terms_of[i].tokens |= 1U << t; });
    }
    for (std::uint32_t i = 0; i < steps_; ++i) {
      terms_of[i].first = term;
      for (std::uint32_t left = terms_of[i].tokens; left != 0; left &= left - 1) {
        terms_[term++] = adapted(q8_terms(rows[__builtin_ctz(left)], steps_)[i]);
      }
    }
  }

  // Fetches a step's share of the panel that comes next, in the order of memory. From memory to the
  // level 2 cache takes longer than a panel of few columns.
  [[gnu::always_inline]] static void fetch(const std::uint8_t* ahead) {
    constexpr std::size_t kBytes = Format::kBytes / Format::kSteps * S::kLanes;
#pragma GCC unroll 16
    for (std::size_t line = 0; line < kBytes; line += 64) {
      __builtin_prefetch(ahead + line, 0, 3);
      __builtin_prefetch(ahead + line + kFetchedEarly, 0, 2);
    }
  }

  // Goes on with the sums of kTokens rows of activations by a block of all lanes' rows. `meanwhile`
  // is called eight times, between the products. In a loop, compilers copy what an instruction of
  // dot_broadcast() takes, so there kInLoop keeps to dot().
  template <int kTokens, bool kInLoop, class Code, class Meanwhile>
  [[gnu::always_inline]] static void add_block(const Code& code, const BlockScales<S>& scales,
                                               const Q8Block* x, F* sums,
                                               const Meanwhile& meanwhile) {
    constexpr CodeForm kForm = Format::kForm;
    // Of few rows, sums of even and odd vectors apart, as each product waits for the one before.
    constexpr int kChains = kTokens <= 2 && kForm != CodeForm::half_scales ? 2 : 1;
    I dots[kChains * kTokens];
    F values[kTokens];
    const auto start = [&](int half) __attribute__((always_inline)) {
#pragma GCC unroll 8
      for (int t = 0; t < kTokens; ++t) {
        dots[t] = Format::kOffset == 0 ? S::zero_integers() : S::broadcast(&x[t].start + half);
        if constexpr (kChains == 2) dots[kTokens + t] = S::zero_integers();
      }
    };
    const auto multiply = [&](int begin, int end) __attribute__((always_inline)) {
#pragma GCC unroll 8
      for (int k = begin; k < end; ++k) {
        const I codes = code(k);
#pragma GCC unroll 8
        for (int t = 0; t < kTokens; ++t) {
          I& dot = dots[k % kChains * kTokens + t];
          if constexpr (kInLoop) {
            dot = S::template dot<true>(dot, codes, S::broadcast(x[t].q + 4 * k));
          } else {
            dot = S::dot_broadcast(dot, codes, x[t].q + 4 * k);
          }
        }
        meanwhile(k);
      }
    };
    start(0);
    multiply(0, kForm == CodeForm::half_scales ? 4 : 8);
    if constexpr (kChains == 2) {
#pragma GCC unroll 8
      for (int t = 0; t < kTokens; ++t) dots[t] = S::add32(dots[t], dots[kTokens + t]);
    }
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) values[t] = S::mul(scales.first, S::to_float(dots[t]));
    if constexpr (kForm == CodeForm::half_scales) {
      start(1);
      multiply(4, 8);
    }
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) {
      if constexpr (kForm == CodeForm::half_scales) {
        values[t] = S::fma(scales.second, S::to_float(dots[t]), values[t]);
      } else if constexpr (kForm == CodeForm::half_minima) {
        const I minima = S::dot_pairs(scales.minimum_codes, S::broadcast(x[t].half_sum));
        values[t] = S::fma(scales.second, S::to_float(minima), values[t]);
      }
      sums[t] = S::fma(S::set(x[t].scale), values[t], sums[t]);
      if constexpr (kForm == CodeForm::minimum) {
        sums[t] = S::fma(S::set(x[t].scaled_sum), scales.second, sums[t]);
      }
    }
  }

  // All columns of S::kLanes weight rows times a group, into the sums; fetches the panel that comes
  // next.
  void multiply_rows(const std::uint8_t* weights, const std::uint8_t* ahead,
                     std::uint32_t group) const {
    switch (first_token(group + 1) - first_token(group)) {
      case 1:
        return multiply_rows<1>(weights, ahead, group);
      case 2:
        return multiply_rows<2>(weights, ahead, group);
      case 3:
        return multiply_rows<3>(weights, ahead, group);
      case 4:
        return multiply_rows<4>(weights, ahead, group);
      case 5:
        return multiply_rows<5>(weights, ahead, group);
      case 6:
        return multiply_rows<6>(weights, ahead, group);
      case 7:
        return multiply_rows<7>(weights, ahead, group);
      default:
        return multiply_rows<8>(weights, ahead, group);
    }
  }

  template <int kTokens>
  void multiply_rows(const std::uint8_t* weights, const std::uint8_t* ahead,
                     std::uint32_t group) const {
    constexpr std::size_t kStepBytes = Format::kBytes / Format::kSteps;
    const std::uint32_t token = first_token(group);
    float* term_sums = term_sums_ + std::size_t{token} * S::kLanes;
    F sums[kTokens];
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) {
      sums[t] = S::zero();
      S::store(term_sums + t * S::kLanes, S::zero());
    }
    const Q8Block* x = blocks_ + std::size_t{token} * steps_;
    const Terms* terms = terms_of_ + std::size_t{group} * steps_;
    const auto use = [&](const auto& code, const BlockScales<S>& scales, const auto& meanwhile)
        __attribute__((always_inline)) {
      if (group == 0) fetch(ahead);
      ahead += kStepBytes * S::kLanes;
      const Q8Block* term = terms_ + terms->first;
      for (std::uint32_t bits = terms->tokens; bits != 0; bits &= bits - 1) {
        float* sum = term_sums + __builtin_ctz(bits) * S::kLanes;
        F one[1] = {S::load(sum)};
        add_block<1, true>(code, scales, term++, one, [](int) {});
        S::store(sum, one[0]);
      }
      ++terms;
      add_block<kTokens, false>(code, scales, x, sums, meanwhile);
      x += kTokens;
    };
    Format::read(EvenRows(weights, product_.row_bytes), steps_, use);
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) S::store(sums_ + (token + t) * S::kLanes, sums[t]);
  }

  const RawProduct& product_;
  const Scratch& scratch_;
  std::uint32_t steps_;
  std::uint32_t groups_;  // of rows of activations
  Q8Block* blocks_;       // of group after group, [steps, its rows]
  Q8Block* terms_;        // of group after group, step after step
  Terms* terms_of_;       // [groups, steps]
  float* sums_;           // [tokens, lanes]
  float* term_sums_;      // [tokens, lanes]
};

// Multiplies with whole panels of weight rows; false where the panels of panel_product.h have to.
template <class Format>
bool multiply_directly(const RawProduct& product, std::uint32_t row_begin, std::uint32_t row_end,
                       const Scratch& scratch) {
  DirectProduct<Format> direct(product, scratch);
  if (!direct.fits()) return false;
  direct.run(row_begin, row_end);
  return true;
}

using DirectMultiply = bool (*)(const RawProduct& product, std::uint32_t row_begin,
                                std::uint32_t row_end, const Scratch& scratch);

template <class S, CodeForm kForm, template <class> class Codes>
constexpr DirectMultiply kDirectBlocks32 = multiply_directly<DirectBlocks32<S, kForm, Codes>>;
template <class S>
constexpr DirectMultiply kDirectQ4K = multiply_directly<DirectQ4K<S>>;
template <class S, CodeForm kForm, template <class> class Block>
constexpr DirectMultiply kDirectK = multiply_directly<DirectK<S, kForm, Block>>;

}  // namespace
}  // namespace edgerunner::cpu
