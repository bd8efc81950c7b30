#pragma once

#include <cstdint>

namespace edgerunner::cuda {

// How the columns of a row of activations follow each other in memory. `operand` is what products
// of a few rows read (few_rows_units.cuh): 32 columns are four groups of eight, four pairs each;
// the first pairs of all groups come first, then the second ones, and so on. Rows in that order
// have a multiple of 32 columns.
enum class ColumnOrder : std::uint8_t { natural, operand };

// Where a column stands. Pairs (2 i, 2 i + 1) stay together.
constexpr std::uint32_t column_place(ColumnOrder order, std::uint32_t col) {
  if (order == ColumnOrder::natural) return col;
  return (col & ~30U) | (col >> 1 & 3U) << 3 | (col >> 3 & 3U) << 1;
}

}  // namespace edgerunner::cuda
