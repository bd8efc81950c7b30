#include "quantize/row_importance.h"

namespace edgerunner {

std::vector<float> importance_of(const gguf::Tensor& tensor, bool fits,
                                 const ImportanceMatrix* importance) {
  std::vector<float> weights;
  if (importance != nullptr) {
    weights = importance->weights(tensor.name, tensor.shape[0], tensor.shape[2] * tensor.shape[3]);
  }
  if (weights.empty() && (fits || importance != nullptr)) {
    weights.assign(tensor.shape[0], 1.0F);
  }
  return weights;
}

void weigh_rows(RowSource& source, std::span<const float> importance) {
  if (importance.empty()) return;
  const std::uint64_t matrices = importance.size() / source.cols;
  source.importance = [=, cols = source.cols, rows = source.rows / matrices](std::uint64_t row) {
    return importance.subspan(row / rows * cols, cols);
  };
}

}  // namespace edgerunner
