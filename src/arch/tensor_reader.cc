#include "arch/tensor_reader.h"

#include <fmt/format.h>

#include <limits>

#include "edgerunner/error.h"
#include "gguf/layout.h"
#include "tensor/dequantize.h"

namespace edgerunner {
namespace {

[[noreturn]] void wrong_shape(const gguf::File& file, const gguf::Tensor& tensor,
                              const std::string& wanted) {
  throw Error(ErrorCode::invalid_file,
              fmt::format("{}: tensor '{}' should have shape {}, but has {}", file.name(),
                          tensor.name, wanted, gguf::shape_text(gguf::shape_of(tensor))));
}

void require_supported(const gguf::File& file, const gguf::Tensor& tensor) {
  const ElementTypeTraits& type = traits(tensor.type);
  if (type.supported) return;
  throw Error(ErrorCode::unsupported, fmt::format("{}: tensor '{}' has element type {}, which "
                                                  "EdgeRunner does not support",
                                                  file.name(), tensor.name, type.name));
}

}  // namespace

TensorReader::TensorReader(const gguf::File& file)
    : file_(&file), taken_(file.tensors().size(), false) {}

const gguf::Tensor& TensorReader::take(std::string_view name) {
  const gguf::Tensor* tensor = file_->find_tensor(name);
  if (tensor == nullptr) {
    throw Error(ErrorCode::invalid_file,
                fmt::format("{}: tensor '{}' is missing", file_->name(), name));
  }
  taken_[static_cast<std::size_t>(tensor - file_->tensors().data())] = true;
  require_supported(*file_, *tensor);
  return *tensor;
}

Matrix TensorReader::matrices(std::string_view name, std::uint32_t count, std::uint32_t rows,
                              std::uint32_t cols) {
  const gguf::Tensor& tensor = take(name);
  if (tensor.rank > 3 || tensor.shape[0] != cols || tensor.shape[1] != rows ||
      tensor.shape[2] != count) {
    wrong_shape(*file_, tensor, fmt::format("[{}, {}, {}]", cols, rows, count));
  }
  return {tensor.name, tensor.type, count * rows, cols, tensor.data};
}

bool TensorReader::has(std::string_view name) const { return file_->find_tensor(name) != nullptr; }

Matrix TensorReader::matrix(std::string_view name, std::uint32_t rows, std::uint32_t cols) {
  const gguf::Tensor& tensor = take(name);
  const bool rows_fit = rows == 0 ? tensor.shape[1] <= std::numeric_limits<std::int32_t>::max()
                                  : tensor.shape[1] == rows;
  if (tensor.rank > 2 || tensor.shape[0] != cols || !rows_fit) {
    wrong_shape(*file_, tensor,
                rows == 0 ? fmt::format("[{}, rows]", cols) : fmt::format("[{}, {}]", cols, rows));
  }
  return {tensor.name, tensor.type, static_cast<std::uint32_t>(tensor.shape[1]), cols, tensor.data};
}

Vector TensorReader::vector(std::string_view name, std::uint32_t length) {
  const gguf::Tensor& tensor = take(name);
  if (tensor.elements() != length || tensor.shape[0] != length) {
    wrong_shape(*file_, tensor, fmt::format("[{}]", length));
  }
  Vector values(length);
  dequantize(tensor.type, tensor.data, values);
  return values;
}

Vector TensorReader::optional_vector(std::string_view name, std::uint32_t length) {
  return has(name) ? vector(name, length) : Vector{};
}

void TensorReader::require_all_taken() const {
  for (std::size_t i = 0; i < taken_.size(); ++i) {
    if (taken_[i]) continue;
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: tensor '{}' has no place in the architecture '{}' as EdgeRunner "
                            "knows it; the model would be computed wrongly without it",
                            file_->name(), file_->tensors()[i].name,
                            file_->get_string("general.architecture").value_or("")));
  }
}

}  // namespace edgerunner
