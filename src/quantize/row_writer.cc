#include "quantize/row_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <mutex>

#include "edgerunner/error.h"
#include "tensor/dequantize.h"
#include "tensor/quantize.h"

namespace edgerunner {
namespace {

// Values that pass through memory at a time: work enough for a few threads.
constexpr std::uint64_t kChunkValues = 1 << 20;

// Keeps the first exception of work that is shared out among threads.
class FirstError {
 public:
  template <class Work>
  void guard(const Work& work) {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
};

void convert_row(const RowSource& source, std::uint64_t row, ElementType to,
                 std::span<float> values, std::span<std::byte> blocks) {
  const std::span<const std::byte> from = source.row(row);
  if (to == source.type && source.offset == 0) {
    std::copy(from.begin(), from.end(), blocks.begin());
    return;
  }
  dequantize(source.type, from, values);
  if (source.offset != 0) {
    for (float& value : values) value += source.offset;
  }
  quantize(to, values, blocks, source.importance ? source.importance(row) : std::span<float>());
}

}  // namespace

void RowWriter::write(std::string_view name, const RowSource& source, ElementType to) {
  const std::uint64_t chunk = std::clamp<std::uint64_t>(kChunkValues / source.cols, 1, source.rows);
  const std::size_t to_bytes = row_bytes(to, source.cols);
  values_.resize(chunk * source.cols);
  blocks_.resize(chunk * to_bytes);
  for (std::uint64_t first = 0; first < source.rows; first += chunk) {
    const auto count = static_cast<std::uint32_t>(std::min(chunk, source.rows - first));
    FirstError error;
    pool_.run([&](ThreadPool::Worker& worker) {
      worker.for_each(count, [&](std::uint32_t i) {
        error.guard([&] {
          convert_row(source, first + i, to,
                      std::span(values_).subspan(i * source.cols, source.cols),
                      std::span(blocks_).subspan(i * to_bytes, to_bytes));
        });
      });
    });
    try {
      error.rethrow();
    } catch (const Error& bad) {
      throw Error(bad.code(), fmt::format("tensor '{}': {}", name, bad.what()));
    }
    writer_.write(name, {blocks_.data(), count * to_bytes});
  }
}

}  // namespace edgerunner
