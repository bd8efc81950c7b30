#include "backend/cuda/adapters.h"

#include <algorithm>

#include "edgerunner/error.h"
#include "tensor/dequantize.h"

namespace edgerunner::cuda {
namespace {

// Calls visit(low rank) for all updates of an adapter, in a fixed order: layers, head, embedding.
template <typename Visit>
void for_each_update(const LoraAdapter& adapter, const Visit& visit) {
  for (std::size_t layer = 0; layer < adapter.layer_count(); ++layer) {
    for (std::size_t target = 0; target < kLayerTargets; ++target) {
      visit(adapter.update(layer, static_cast<LoraTarget>(target)));
    }
  }
  visit(adapter.update(0, LoraTarget::head));
  visit(adapter.embedding());
}

std::size_t values_of(const Matrix& matrix) { return std::size_t{matrix.rows} * matrix.cols; }

std::size_t matrix_bytes(const ExecutorOptions& options) {
  std::size_t values = 0;
  for (const LoraAdapter* adapter : options.adapters) {
    for_each_update(*adapter, [&](const LowRank& update) {
      values += values_of(update.a) + values_of(update.b);
    });
  }
  return values * sizeof(float);
}

std::size_t largest_rank(const ExecutorOptions& options) {
  std::size_t rank = 0;
  for (const LoraAdapter* adapter : options.adapters) {
    rank = std::max<std::size_t>(rank, adapter->largest_rank());
  }
  return rank;
}

std::size_t scale_bytes(const ExecutorOptions& options) {
  return options.adapters.size() * options.max_rows * sizeof(float);
}

std::vector<float> unpacked(const Matrix& matrix) {
  std::vector<float> values(values_of(matrix));
  const std::size_t stride = row_bytes(matrix.type, matrix.cols);
  for (std::size_t row = 0; row < matrix.rows; ++row) {
    dequantize(matrix.type, matrix.data.subspan(row * stride, stride),
               std::span(values).subspan(row * matrix.cols, matrix.cols));
  }
  return values;
}

std::vector<float> transposed(const std::vector<float>& values, std::size_t rows,
                              std::size_t cols) {
  std::vector<float> result(values.size());
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t col = 0; col < cols; ++col) {
      result[col * rows + row] = values[row * cols + col];
    }
  }
  return result;
}

}  // namespace

Adapters::Adapters(const ExecutorOptions& options)
    : max_rows_(options.max_rows),
      matrices_(matrix_bytes(options)),
      host_scales_(scale_bytes(options)),
      scales_(scale_bytes(options)),
      low_(options.max_rows * largest_rank(options) * sizeof(float)) {
  auto* at = matrices_.as<float>();
  const auto upload = [&](const std::vector<float>& values) {
    check(cudaMemcpy(at, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice),
          "uploading adapters");
    const float* const result = at;
    at += values.size();
    return result;
  };
  for (const LoraAdapter* adapter : options.adapters) {
    std::vector<DeviceLowRank> updates;
    for_each_update(*adapter, [&](const LowRank& update) {
      DeviceLowRank& to = updates.emplace_back();
      if (update.empty()) return;
      to.rank = update.b.cols;
      to.cols = update.a.cols;
      to.rows = update.b.rows;
      to.scale = update.scale;
      to.a = upload(unpacked(update.a));
      to.b = upload(transposed(unpacked(update.b), to.rows, to.rank));
    });
    Loaded& loaded = loaded_.emplace_back();
    loaded.adapter = adapter;
    loaded.layers.resize(adapter->layer_count());
    auto next = updates.begin();
    for (auto& layer : loaded.layers) {
      for (DeviceLowRank& update : layer) update = *next++;
    }
    loaded.head = *next++;
    loaded.embedding = *next;
  }
}

std::uint64_t Adapters::bytes(const ExecutorOptions& options) {
  return matrix_bytes(options) + scale_bytes(options) +
         options.max_rows * largest_rank(options) * sizeof(float);
}

void Adapters::begin(const Batch& batch, cudaStream_t stream) {
  for (Loaded& loaded : loaded_) loaded.used = false;
  const bool none = std::all_of(batch.sequences.begin(), batch.sequences.end(),
                                [](const SequenceSlice& s) { return s.adapters == nullptr; });
  if (none) return;
  auto* const scales = host_scales_.as<float>();
  std::fill_n(scales, loaded_.size() * max_rows_, 0.0F);
  std::uint32_t row = 0;
  for (const SequenceSlice& slice : batch.sequences) {
    if (slice.adapters != nullptr) {
      for (const AdapterSet::Use& use : slice.adapters->uses) {
        const auto found = std::find_if(loaded_.begin(), loaded_.end(), [&](const Loaded& loaded) {
          return loaded.adapter == use.adapter;
        });
        if (found == loaded_.end()) {
          throw Error(ErrorCode::invalid_argument,
                      "forward pass: a sequence has adapters that the executor was not made for");
        }
        found->used = true;
        std::fill_n(scales + (found - loaded_.begin()) * max_rows_ + row, slice.rows, use.scale);
      }
    }
    row += slice.rows;
  }
  check(
      cudaMemcpyAsync(scales_.as<float>(), scales, scales_.size(), cudaMemcpyHostToDevice, stream),
      "uploading which rows have adapters");
}

bool Adapters::any() const {
  return std::any_of(loaded_.begin(), loaded_.end(), [](const Loaded& l) { return l.used; });
}

std::vector<bool> Adapters::used() const {
  std::vector<bool> result;
  for (const Loaded& loaded : loaded_) result.push_back(loaded.used);
  return result;
}

bool Adapters::change(std::size_t layer, std::initializer_list<LoraTarget> targets) const {
  return std::any_of(loaded_.begin(), loaded_.end(), [&](const Loaded& loaded) {
    return loaded.used && std::any_of(targets.begin(), targets.end(), [&](LoraTarget target) {
             return loaded.update(layer, target).rank > 0;
           });
  });
}

AdaptedRows Adapters::rows_of(std::size_t index, std::uint32_t rows,
                              const std::uint32_t* chosen) const {
  return {scales_.as<float>() + index * max_rows_, chosen, rows};
}

void Adapters::apply(std::size_t layer, LoraTarget target, const AdapterInput& x,
                     std::uint32_t rows, const std::uint32_t* chosen, float* y,
                     std::uint32_t y_stride, cudaStream_t stream) const {
  for (std::size_t i = 0; i < loaded_.size(); ++i) {
    if (!loaded_[i].used) continue;
    const DeviceLowRank& update = loaded_[i].update(layer, target);
    if (update.rank == 0) continue;
    const AdaptedRows adapted = rows_of(i, rows, chosen);
    launch_adapt_down(update, adapted, x, low_.as<float>(), stream);
    launch_adapt_up(update, adapted, low_.as<float>(), y, y_stride, stream);
  }
}

void Adapters::apply_embedding(const DeviceBatch& rows, float factor, float* x,
                               cudaStream_t stream) const {
  for (std::size_t i = 0; i < loaded_.size(); ++i) {
    const DeviceLowRank& update = loaded_[i].embedding;
    if (!loaded_[i].used || update.rank == 0) continue;
    const AdaptedRows adapted = rows_of(i, rows.rows, nullptr);
    launch_adapt_lookup(update, adapted, rows.tokens, factor, low_.as<float>(), stream);
    launch_adapt_up(update, adapted, low_.as<float>(), x, update.rows, stream);
  }
}

}  // namespace edgerunner::cuda
