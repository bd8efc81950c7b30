#include "quantize/importance_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "edgerunner/error.h"
#include "gguf/file.h"
#include "gguf/writer.h"
#include "tensor/dequantize.h"

namespace edgerunner {
namespace {

constexpr std::string_view kSquares = ".in_sum2";
constexpr std::string_view kCounts = ".counts";

// Columns whose inputs were nearly nothing on this text still count a little, for others.
constexpr double kLeast = 1e-3;

std::vector<double> numbers(const gguf::File& file, const gguf::Tensor& tensor) {
  std::vector<float> values(tensor.elements());
  dequantize(tensor.type, tensor.data, values);
  for (const float value : values) {
    if (!(value >= 0) || !std::isfinite(value)) {
      throw Error(ErrorCode::invalid_file,
                  fmt::format("{}: tensor '{}' holds {}", file.name(), tensor.name, value));
    }
  }
  return {values.begin(), values.end()};
}

void write(gguf::Writer& writer, const std::string& name, const std::vector<double>& values) {
  const std::vector<float> floats(values.begin(), values.end());
  writer.write(name, std::as_bytes(std::span(floats)));
}

}  // namespace

void ImportanceMatrix::add(std::string_view name, std::uint32_t experts, std::uint32_t expert,
                           std::span<const float> input) {
  auto found = entries_.find(name);
  if (found == entries_.end()) {
    found = entries_.emplace(std::string(name), Entry{}).first;
    found->second.cols = input.size();
    found->second.squares.resize(experts * input.size());
    found->second.counts.resize(experts);
  }
  Entry& entry = found->second;
  double* squares = &entry.squares[expert * entry.cols];
  for (std::size_t i = 0; i < input.size(); ++i) {
    squares[i] += static_cast<double>(input[i]) * static_cast<double>(input[i]);
  }
  entry.counts[expert] += 1;
}

void ImportanceMatrix::save(const std::filesystem::path& path, const std::string& source,
                            std::uint32_t windows, std::uint32_t window_length) const {
  gguf::Writer writer(path);
  writer.set("general.type", std::string("imatrix"));
  writer.set("imatrix.datasets", std::vector<std::string>{source});
  writer.set("imatrix.chunk_count", windows);
  writer.set("imatrix.chunk_size", window_length);
  for (const auto& [name, entry] : entries_) {
    const std::uint64_t squares[] = {entry.cols, entry.counts.size()};
    const std::uint64_t counts[] = {1, entry.counts.size()};
    writer.declare(name + std::string(kSquares), ElementType::f32, squares);
    writer.declare(name + std::string(kCounts), ElementType::f32, counts);
  }
  for (const auto& [name, entry] : entries_) {
    write(writer, name + std::string(kSquares), entry.squares);
    write(writer, name + std::string(kCounts), entry.counts);
  }
  writer.finish();
}

ImportanceMatrix ImportanceMatrix::load(const std::filesystem::path& path) {
  const gguf::File file = gguf::File::open(path);
  const auto refuse = [&](std::string_view what) {
    throw Error(ErrorCode::invalid_file, fmt::format("{}: {}", file.name(), what));
  };
  if (file.get_string("general.type").value_or("") != "imatrix") {
    refuse("is not an importance matrix (general.type is not \"imatrix\")");
  }
  ImportanceMatrix result;
  for (const gguf::Tensor& tensor : file.tensors()) {
    if (!tensor.name.ends_with(kSquares)) continue;
    const std::string name(tensor.name.substr(0, tensor.name.size() - kSquares.size()));
    const gguf::Tensor* counts = file.find_tensor(name + std::string(kCounts));
    if (counts == nullptr || counts->type != ElementType::f32 || tensor.type != ElementType::f32 ||
        counts->elements() != tensor.elements() / tensor.shape[0]) {
      refuse(fmt::format("tensor '{}' lacks counts that fit it", tensor.name));
    }
    result.entries_[name] = {tensor.shape[0], numbers(file, tensor), numbers(file, *counts)};
  }
  return result;
}

std::vector<float> ImportanceMatrix::weights(std::string_view name, std::uint64_t cols,
                                             std::uint64_t matrices) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return {};
  const Entry& entry = found->second;
  if (entry.cols != cols || entry.counts.size() != matrices) return {};
  std::vector<float> result(cols * matrices, 1.0F);
  for (std::size_t m = 0; m < matrices; ++m) {
    const auto begin = entry.squares.begin() + static_cast<std::ptrdiff_t>(m * cols);
    const double mean = std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(cols), 0.0) /
                        static_cast<double>(cols);
    if (!(mean > 0)) continue;  // an expert that no token chose: all columns count alike
    for (std::size_t i = 0; i < cols; ++i) {
      result[m * cols + i] =
          static_cast<float>(std::max(begin[static_cast<std::ptrdiff_t>(i)] / mean, kLeast));
    }
  }
  return result;
}

}  // namespace edgerunner
