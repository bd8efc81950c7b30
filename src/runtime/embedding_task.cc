#include "runtime/embedding_task.h"

#include <cmath>
#include <cstddef>
#include <utility>

#include "edgerunner/error.h"

namespace edgerunner {

Task::Step EmbeddingTask::take_hidden(std::uint32_t first, std::uint32_t rows,
                                      std::span<const float> hidden) {
  const std::size_t dim = hidden.size() / rows;
  if (first == 0) sum_.assign(dim, 0);  // also where pages were given up and it begins again
  const bool ends = first + rows == tokens_.size();
  if (pooling_ == Pooling::mean) {
    for (std::size_t i = 0; i < hidden.size(); ++i) sum_[i % dim] += hidden[i];
  } else if (ends) {
    const std::span<const float> last = hidden.last(dim);
    sum_.assign(last.begin(), last.end());
  }
  if (!ends) return Step::append;

  double squares = 0;
  for (const double value : sum_) squares += value * value;
  if (!std::isfinite(squares)) {
    throw Error(ErrorCode::device,
                "the model's hidden states are not finite; the file may be "
                "damaged, or its values too large for this precision");
  }
  const double scale = squares > 0 ? 1 / std::sqrt(squares) : 0;
  std::vector<float> embedding;
  embedding.reserve(dim);
  for (const double value : sum_) embedding.push_back(static_cast<float>(value * scale));
  done_(std::move(embedding));
  return Step::done;
}

void EmbeddingTask::cancel() noexcept {
  fail(std::make_exception_ptr(Error(ErrorCode::cancelled, "the embedding was cancelled")));
}

void EmbeddingTask::fail(const std::exception_ptr& error) noexcept { failed_(error); }

}  // namespace edgerunner
