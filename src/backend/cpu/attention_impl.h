#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/exp2_impl.h"
#include "backend/cpu/simd/unroll.h"
#include "backend/cpu/simd/wide_sum.h"
#include "backend/cpu/vector_kernels.h"

// The attention algorithm, written once over `Simd`, which the including translation unit brings.
namespace edgerunner::cpu {
namespace {

constexpr std::uint32_t kRowBlock = 6;       // rows of a register tile; see Simd::kPanelVectors
constexpr float kLowest = -3.402823466e38F;  // below every score, and finite: x - x must be 0

// Whether B comes from the cache of keys and values itself, from memory that is, rather than from a
// page that many rows share and that was converted for them.
template <class B>
inline constexpr bool kReadsCache = sizeof(B) < sizeof(float);

// C[rows, columns] = (scale ? C * scale[row] : 0) + A[rows, begin..end) B[begin..end, columns],
// each element one chain of multiply-adds in ascending order. What stands `ahead` bytes from B is
// fetched on the way.
template <int kRows, int kVectors, class B>
void multiply_block(const float* a, std::size_t a_stride, const B* b, std::size_t b_stride,
                    std::ptrdiff_t ahead, std::uint32_t begin, std::uint32_t end,
                    const float* scale, float* c, std::size_t c_stride) {
  typename Simd::Vector sums[kRows][kVectors];
  EDGERUNNER_UNROLL
  for (int r = 0; r < kRows; ++r) {
    EDGERUNNER_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = scale == nullptr ? Simd::broadcast(0.0F)
                                    : Simd::mul(Simd::load(c + r * c_stride + v * Simd::kLanes),
                                                Simd::broadcast(scale[r]));
    }
  }
  for (std::uint32_t k = begin; k < end; ++k) {
    typename Simd::Vector shared[kVectors];
    EDGERUNNER_UNROLL
    for (int v = 0; v < kVectors; ++v) shared[v] = Simd::load(b + k * b_stride + v * Simd::kLanes);
    if constexpr (kReadsCache<B>) {
      constexpr int kBytes = kVectors * Simd::kLanes * static_cast<int>(sizeof(B));
      const auto* next = reinterpret_cast<const std::byte*>(b + k * b_stride) + ahead;
      for (int line = 0; line < kBytes; line += 64) __builtin_prefetch(next + line, 0, 2);
    }
    EDGERUNNER_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const typename Simd::Vector factor = Simd::broadcast(a[r * a_stride + k]);
      EDGERUNNER_UNROLL
      for (int v = 0; v < kVectors; ++v) sums[r][v] = Simd::fma(factor, shared[v], sums[r][v]);
    }
  }
  EDGERUNNER_UNROLL
  for (int r = 0; r < kRows; ++r) {
    EDGERUNNER_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      Simd::store(c + r * c_stride + v * Simd::kLanes, sums[r][v]);
    }
  }
}

template <class B>
using BlockProduct = void (*)(const float*, std::size_t, const B*, std::size_t, std::ptrdiff_t,
                              std::uint32_t, std::uint32_t, const float*, float*, std::size_t);

template <class B, int kVectors>
constexpr BlockProduct<B> kProductsByRows[kRowBlock] = {
    multiply_block<1, kVectors, B>, multiply_block<2, kVectors, B>, multiply_block<3, kVectors, B>,
    multiply_block<4, kVectors, B>, multiply_block<5, kVectors, B>, multiply_block<6, kVectors, B>};

// The product over any number of columns, a multiple of the lanes, panel by panel.
template <class B>
void multiply(std::uint32_t rows, std::uint32_t columns, const float* a, std::size_t a_stride,
              const B* b, std::size_t b_stride, std::ptrdiff_t ahead, std::uint32_t begin,
              std::uint32_t end, const float* scale, float* c, std::size_t c_stride) {
  constexpr std::uint32_t kPanel = Simd::kPanelVectors * Simd::kLanes;
  std::uint32_t column = 0;
  for (; column + kPanel <= columns; column += kPanel) {
    kProductsByRows<B, Simd::kPanelVectors>[rows - 1](a, a_stride, b + column, b_stride, ahead,
                                                      begin, end, scale, c + column, c_stride);
  }
  for (; column < columns; column += Simd::kLanes) {
    kProductsByRows<B, 1>[rows - 1](a, a_stride, b + column, b_stride, ahead, begin, end, scale,
                                    c + column, c_stride);
  }
}

// The tokens of a page that a row sees, relative to the page; empty where begin >= end.
struct Visible {
  std::uint32_t begin;
  std::uint32_t end;
};

Visible visible_in_page(const AttentionTile& tile, std::uint32_t token, std::uint32_t page) {
  const std::uint32_t base = page * kPageTokens;
  const std::uint32_t first = tile.first_visible(token);
  const std::uint32_t last = tile.position + token;
  if (last < base) return {0, 0};
  const std::uint32_t begin = first > base ? first - base : 0;
  const std::uint32_t end = last - base + 1;
  return {begin, end < kPageTokens ? end : kPageTokens};
}

// A page of the cache as the products read it. The scales are there where it holds 8 bits, else
// null.
template <class B>
struct PageView {
  const B* keys;              // [head_dim, kPageTokens]
  const float* key_scales;    // [kPageTokens]
  const B* values;            // [kPageTokens, value_stride]
  const float* value_scales;  // [kPageTokens]
  std::ptrdiff_t ahead;       // bytes from here to the page that will be read next, or 0
};

// Turns a row's scores, [columns] with `columns` a multiple of 16, into weights relative to the
// largest score so far, which it updates with the sum of the weights; returns the factor for what
// was summed before. A weight that is left in `scores` has its value's scale in it.
float weigh(float* scores, std::uint32_t columns, Visible visible, float cap,
            const float* key_scales, const float* value_scales, float* largest, float* sums) {
  using Vector = typename Simd::Vector;
  const Vector nothing = Simd::broadcast(kLowest);
  const bool whole = visible.begin == 0 && visible.end == columns;
  const auto seen = [&](Vector x, Vector other, std::uint32_t i) {
    return Simd::select(x, other, static_cast<int>(visible.begin) - static_cast<int>(i),
                        static_cast<int>(visible.end) - static_cast<int>(i));
  };
  Vector top = Simd::broadcast(*largest);
  for (std::uint32_t i = 0; i < columns; i += Simd::kLanes) {
    Vector x = Simd::load(scores + i);
    if (key_scales != nullptr) x = Simd::mul(x, Simd::load(key_scales + i));
    if (cap != 0) x = soft_cap(x, cap);
    if (key_scales != nullptr || cap != 0) Simd::store(scores + i, x);
    if (!whole) x = seen(x, nothing, i);
    top = Simd::max(top, x);
  }
  const float now = Simd::largest(top);
  const Vector origin = Simd::broadcast(now);
  const Vector factor = exp2(Simd::sub(Simd::broadcast(*largest), origin));
  WideSum total = WideSum::zero();
  const Vector zero = Simd::broadcast(0.0F);
  for (std::uint32_t first = 0; first < columns; first += WideSum::kLanes) {
    EDGERUNNER_UNROLL
    for (int part = 0; part < WideSum::kParts; ++part) {
      const std::uint32_t i = first + static_cast<std::uint32_t>(part * Simd::kLanes);
      Vector weight = exp2(Simd::sub(Simd::load(scores + i), origin));
      if (!whole) weight = seen(weight, zero, i);
      total.part[part] = Simd::add(total.part[part], weight);
      if (value_scales != nullptr) {
        weight = Simd::mul(weight, Simd::load(value_scales + i));
        if (!whole) weight = seen(weight, zero, i);  // a scale that is not a number stays unseen
      }
      Simd::store(scores + i, weight);
    }
  }
  *largest = now;
  EDGERUNNER_UNROLL
  for (int part = 0; part < WideSum::kParts; ++part) {
    float* sum = sums + part * Simd::kLanes;
    Simd::store(sum, Simd::fma(Simd::load(sum), factor, total.part[part]));
  }
  float first[Simd::kLanes];
  Simd::store(first, factor);
  return first[0];
}

template <class B>
void convert(const B* from, std::size_t count, float* to) {
  for (std::size_t i = 0; i < count; i += Simd::kLanes) Simd::store(to + i, Simd::load(from + i));
}

struct AttentionScratch {
  float* keys;    // [head_dim, kPageTokens]
  float* values;  // [kPageTokens, value_stride]
  float* scores;  // [kRowBlock, kPageTokens]
  float* sums;    // [tile rows, WideSum::kLanes]

  AttentionScratch(std::byte* scratch, const KvHeadLayout& layout)
      : keys(reinterpret_cast<float*>(scratch)),
        values(keys + std::size_t{layout.head_dim} * kPageTokens),
        scores(values + std::size_t{layout.value_stride()} * kPageTokens),
        sums(scores + std::size_t{kRowBlock} * kPageTokens) {}
};

// One page for up to kRowBlock rows from `row` on.
template <class B>
void attend_page(const AttentionTile& tile, std::uint32_t page, std::uint32_t row,
                 std::uint32_t rows, const PageView<B>& view, float* records,
                 const AttentionScratch& scratch) {
  const std::uint32_t head_dim = tile.layout.head_dim;
  const std::uint32_t record = attention_record_floats(head_dim);
  Visible visible[kRowBlock];
  std::uint32_t begin = kPageTokens;
  std::uint32_t end = 0;
  for (std::uint32_t r = 0; r < rows; ++r) {
    visible[r] = visible_in_page(tile, (row + r) / tile.heads, page);
    if (visible[r].begin >= visible[r].end) {
      visible[r] = {0, 0};
      continue;
    }
    if (visible[r].begin < begin) begin = visible[r].begin;
    if (visible[r].end > end) end = visible[r].end;
  }
  if (begin >= end) return;

  const std::uint32_t columns = (end + WideSum::kLanes - 1) / WideSum::kLanes * WideSum::kLanes;
  multiply(rows, columns, tile.queries + std::size_t{row} * head_dim, head_dim, view.keys,
           kPageTokens, view.ahead, 0, head_dim, nullptr, scratch.scores, kPageTokens);
  float factors[kRowBlock];
  for (std::uint32_t r = 0; r < rows; ++r) {
    factors[r] = weigh(scratch.scores + r * kPageTokens, columns, visible[r], tile.cap,
                       view.key_scales, view.value_scales, records + std::size_t{row + r} * record,
                       scratch.sums + std::size_t{row + r} * WideSum::kLanes);
  }
  multiply(rows, tile.layout.value_stride(), scratch.scores, kPageTokens, view.values,
           tile.layout.value_stride(), view.ahead, begin, end, factors,
           records + std::size_t{row} * record + kRecordHeader, record);
}

template <class B>
PageView<B> view_of(const std::byte* block, const KvHeadLayout& layout, std::ptrdiff_t ahead) {
  const auto scales = [&](std::size_t at) {
    return layout.precision == KvPrecision::q8 ? reinterpret_cast<const float*>(block + at)
                                               : nullptr;
  };
  return {reinterpret_cast<const B*>(block), scales(layout.key_scales()),
          reinterpret_cast<const B*>(block + layout.values()), scales(layout.value_scales()),
          ahead};
}

template <class B>
void attend_split(const AttentionTile& tile, std::uint32_t split, float* records,
                  std::byte* scratch_bytes) {
  const AttentionScratch scratch(scratch_bytes, tile.layout);
  const std::uint32_t record = attention_record_floats(tile.layout.head_dim);
  const std::uint32_t rows = tile.rows();
  for (std::size_t i = 0; i < std::size_t{rows} * record; ++i) records[i] = 0.0F;
  for (std::size_t i = 0; i < std::size_t{rows} * WideSum::kLanes; ++i) scratch.sums[i] = 0.0F;
  for (std::uint32_t r = 0; r < rows; ++r) records[std::size_t{r} * record] = kLowest;

  std::uint32_t page = split * kSplitPages;
  std::uint32_t end_page = page + kSplitPages;
  if (page < tile.first_page()) page = tile.first_page();
  if (end_page > tile.end_page()) end_page = tile.end_page();
  for (; page < end_page; ++page) {
    const std::byte* block = tile.cache + tile.pages[page] * tile.page_stride;
    const std::byte* next =
        page + 1 < end_page ? tile.cache + tile.pages[page + 1] * tile.page_stride : tile.next;
    const PageView<B> view = view_of<B>(block, tile.layout, next == nullptr ? 0 : next - block);
    const auto attend_rows = [&](const auto& pages) {
      for (std::uint32_t row = 0; row < rows; row += kRowBlock) {
        attend_page(tile, page, row, rows - row < kRowBlock ? rows - row : kRowBlock, pages,
                    records, scratch);
      }
    };
    // Many rows share one conversion; a few convert as they read.
    if (sizeof(B) < sizeof(float) && rows > kRowBlock) {
      convert(view.keys, std::size_t{tile.layout.head_dim} * kPageTokens, scratch.keys);
      convert(view.values, std::size_t{tile.layout.value_stride()} * kPageTokens, scratch.values);
      attend_rows(
          PageView<float>{scratch.keys, view.key_scales, scratch.values, view.value_scales, 0});
    } else {
      attend_rows(view);
    }
  }
  for (std::uint32_t r = 0; r < rows; ++r) {
    records[std::size_t{r} * record + 1] =
        WideSum::load(scratch.sums + std::size_t{r} * WideSum::kLanes).total();
  }
}

void attend(const AttentionTile& tile, std::uint32_t split, float* records, std::byte* scratch) {
  switch (tile.layout.precision) {
    case KvPrecision::f16:
      attend_split<std::uint16_t>(tile, split, records, scratch);
      return;
    case KvPrecision::f32:
      attend_split<float>(tile, split, records, scratch);
      return;
    case KvPrecision::q8:
      attend_split<std::int8_t>(tile, split, records, scratch);
      return;
  }
}

void merge(float* into, const float* from, std::uint32_t rows, std::uint32_t head_dim) {
  using Vector = typename Simd::Vector;
  const std::uint32_t record = attention_record_floats(head_dim);
  for (std::uint32_t r = 0; r < rows; ++r, into += record, from += record) {
    const float largest = into[0] > from[0] ? into[0] : from[0];
    const Vector origin = Simd::broadcast(largest);
    const Vector before = exp2(Simd::sub(Simd::broadcast(into[0]), origin));
    const Vector next = exp2(Simd::sub(Simd::broadcast(from[0]), origin));
    const auto combine = [&](Vector a, Vector b) {
      return Simd::fma(b, next, Simd::mul(a, before));
    };
    for (std::uint32_t i = kRecordHeader; i < record; i += Simd::kLanes) {
      Simd::store(into + i, combine(Simd::load(into + i), Simd::load(from + i)));
    }
    float sum[Simd::kLanes];
    Simd::store(sum, combine(Simd::broadcast(into[1]), Simd::broadcast(from[1])));
    into[1] = sum[0];
    into[0] = largest;
  }
}

void finish(const float* record, std::uint32_t head_dim, float* out) {
  const float inverse = 1.0F / record[1];
  const typename Simd::Vector inverses = Simd::broadcast(inverse);
  std::uint32_t i = 0;
  for (; i + Simd::kLanes <= head_dim; i += Simd::kLanes) {
    Simd::store(out + i, Simd::mul(Simd::load(record + kRecordHeader + i), inverses));
  }
  for (; i < head_dim; ++i) out[i] = record[kRecordHeader + i] * inverse;
}

}  // namespace
}  // namespace edgerunner::cpu
