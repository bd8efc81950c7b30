#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "gguf/writer.h"
#include "tensor/element_type.h"

namespace edgerunner {

// Where a tensor's rows come from: anywhere in mapped files, in any order.
struct RowSource {
  ElementType type = ElementType::f32;
  std::uint64_t rows = 0;
  std::uint64_t cols = 0;
  std::function<std::span<const std::byte>(std::uint64_t row)> row;  // row_bytes(type, cols)
  float offset = 0;                                                  // added to every value
  // [cols] or empty: what an error in each column of the row counts; see quantize().
  std::function<std::span<const float>(std::uint64_t row)> importance = nullptr;
};

// Turns tensors into other types, row by row on several threads, and hands the bytes to a writer.
// A few megabytes pass through memory at a time.
class RowWriter {
 public:
  RowWriter(gguf::Writer& writer, int threads) : writer_(writer), pool_(threads) {}

  // Writes the tensor `name`, declared with the type `to`. Throws Error(invalid_argument) naming it
  // where its values don't fit the type.
  void write(std::string_view name, const RowSource& source, ElementType to);

 private:
  gguf::Writer& writer_;
  ThreadPool pool_;
  std::vector<float> values_;      // [chunk, cols]
  std::vector<std::byte> blocks_;  // [chunk, row bytes]
};

}  // namespace edgerunner
