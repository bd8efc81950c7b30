#include "quantize/quantize_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <vector>

#include "base/thread_pool.h"
#include "edgerunner/error.h"
#include "gguf/writer.h"
#include "tensor/dequantize.h"
#include "tensor/quantize.h"

namespace edgerunner {
namespace {

// Values that pass through memory at a time: work enough for a few threads.
constexpr std::uint64_t kChunkValues = 1 << 20;
constexpr std::uint32_t kQuantizationVersion = 2;  // of the K formats' block layout

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

// Turns tensors into other types, row by row, and hands the bytes to the writer.
class Converter {
 public:
  Converter(gguf::Writer& writer, int threads) : writer_(writer), pool_(threads) {}

  void convert(const gguf::Tensor& tensor, ElementType to) {
    if (to == tensor.type) {
      writer_.write(tensor.name, tensor.data);
      return;
    }
    const std::uint64_t cols = tensor.shape[0];
    const std::uint64_t rows = tensor.elements() / cols;
    const std::uint64_t chunk = std::clamp<std::uint64_t>(kChunkValues / cols, 1, rows);
    const std::size_t from_bytes = row_bytes(tensor.type, cols);
    const std::size_t to_bytes = row_bytes(to, cols);
    values_.resize(chunk * cols);
    blocks_.resize(chunk * to_bytes);
    for (std::uint64_t first = 0; first < rows; first += chunk) {
      const auto count = static_cast<std::uint32_t>(std::min(chunk, rows - first));
      FirstError error;
      pool_.run([&](ThreadPool::Worker& worker) {
        worker.for_each(count, [&](std::uint32_t row) {
          error.guard([&] {
            const std::span<float> values(values_.data() + row * cols, cols);
            dequantize(tensor.type, tensor.data.subspan((first + row) * from_bytes, from_bytes),
                       values);
            quantize(to, values, {blocks_.data() + row * to_bytes, to_bytes});
          });
        });
      });
      error.rethrow();
      writer_.write(tensor.name, {blocks_.data(), count * to_bytes});
    }
  }

 private:
  gguf::Writer& writer_;
  ThreadPool pool_;
  std::vector<float> values_;      // [chunk, cols]
  std::vector<std::byte> blocks_;  // [chunk, row bytes]
};

void require_another_file(const gguf::File& model, const std::filesystem::path& out) {
  std::error_code ignored;
  if (!std::filesystem::equivalent(model.name(), out, ignored)) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("'{}' is the model itself; choose another name for the quantised file",
                          out.string()));
}

}  // namespace

QuantizeReport quantize_file(const gguf::File& model, const std::filesystem::path& out,
                             const Recipe& recipe, const QuantizeOptions& options) {
  require_another_file(model, out);
  const TypeChooser chooser(model, recipe);
  gguf::Writer writer(out, {.version = 3, .max_shard_bytes = options.max_shard_bytes});
  writer.copy_metadata(model);
  writer.set("general.file_type", recipe.file_type);
  writer.set("general.quantization_version", kQuantizationVersion);

  QuantizeReport report;
  for (const gguf::Tensor& tensor : model.tensors()) {
    const ElementType type = chooser.choose(tensor);
    writer.declare(tensor.name, type, {tensor.shape.data(), tensor.rank});
    report.elements += tensor.elements();
    report.bytes_in += tensor.data.size();
    report.bytes_out += row_bytes(type, tensor.elements());
    ++report.tensors[type];
  }
  Converter converter(writer, options.threads);
  std::uint64_t done = 0;
  for (const gguf::Tensor& tensor : model.tensors()) {
    if (options.progress) options.progress(tensor.name, done, report.bytes_in);
    try {
      converter.convert(tensor, chooser.choose(tensor));
    } catch (const Error& error) {
      throw Error(error.code(),
                  fmt::format("{}: tensor '{}': {}", model.name(), tensor.name, error.what()));
    }
    done += tensor.data.size();
  }
  writer.finish();
  return report;
}

}  // namespace edgerunner
