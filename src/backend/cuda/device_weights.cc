#include "backend/cuda/device_weights.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "backend/cuda/repack.h"

namespace edgerunner::cuda {
namespace {

// Matrices begin at multiples of a cache line's sector pair.
constexpr std::size_t kAlignment = 256;
constexpr std::size_t round_up(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Two of these alternate: the next piece is read from the file while the last one travels. Large
// enough that a copy runs at the link's speed, small enough to begin at once.
constexpr std::size_t kStagingBytes = std::size_t{16} << 20;

std::size_t matrix_bytes(const Matrix& matrix) {
  return round_up(std::size_t{matrix.rows} * device_row_bytes(layout(matrix.type), matrix.cols));
}

// Calls visit(matrix) for every matrix that takes memory of its own, in a fixed order.
template <typename Visit>
void for_each_matrix(const Weights& weights, Visit&& visit) {
  visit(weights.embedding);
  for (const LayerWeights& layer : weights.layers) {
    for (const Matrix* matrix :
         {&layer.attention.q, &layer.attention.k, &layer.attention.v, &layer.attention.o,
          &layer.feed_forward.gate, &layer.feed_forward.up, &layer.feed_forward.down}) {
      visit(*matrix);
    }
    const MixtureWeights& m = layer.feed_forward.mixture;
    for (const Matrix* matrix : {&m.router, &m.gate, &m.up, &m.down, &m.shared_gate, &m.shared_up,
                                 &m.shared_down, &m.shared_router}) {
      visit(*matrix);
    }
  }
}

bool tied(const Weights& weights) {
  return weights.head.name == weights.embedding.name &&
         weights.head.data.data() == weights.embedding.data.data();
}

std::size_t vector_floats(const Weights& weights) {
  std::size_t floats = 0;
  const auto add = [&](std::initializer_list<const Vector*> vectors) {
    for (const Vector* vector : vectors) {
      floats += round_up(vector->size() * sizeof(float)) / sizeof(float);
    }
  };
  add({&weights.output_norm, &weights.output_norm_bias});
  for (const LayerWeights& layer : weights.layers) {
    const AttentionWeights& a = layer.attention;
    const FeedForwardWeights& f = layer.feed_forward;
    add({&a.norm, &a.norm_bias, &a.q_bias, &a.k_bias, &a.v_bias, &a.o_bias, &a.q_norm, &a.k_norm,
         &a.post_norm});
    add({&f.norm, &f.norm_bias, &f.gate_bias, &f.up_bias, &f.down_bias, &f.post_norm});
  }
  return floats;
}

}  // namespace

std::uint64_t device_weight_bytes(const Weights& weights) {
  std::uint64_t bytes = vector_floats(weights) * sizeof(float);
  for_each_matrix(weights, [&](const Matrix& matrix) { bytes += matrix_bytes(matrix); });
  if (!tied(weights)) bytes += matrix_bytes(weights.head);
  return bytes;
}

// Brings matrices and vectors to the device one after another.
class Uploader {
 public:
  Uploader(DeviceWeights& to, const Weights& weights, WeightSource source,
           const std::function<void(double)>& on_progress)
      : to_(to), on_progress_(on_progress), source_(source) {
    std::size_t matrix_total = tied(weights) ? 0 : matrix_bytes(weights.head);
    std::size_t widest_row = 0;
    const auto measure = [&](const Matrix& matrix) {
      widest_row = std::max(widest_row, row_bytes(matrix.type, matrix.cols));
    };
    for_each_matrix(weights, [&](const Matrix& matrix) {
      matrix_total += matrix_bytes(matrix);
      measure(matrix);
    });
    measure(weights.head);
    staging_bytes_ = std::max(kStagingBytes, widest_row);
    to_.matrices_ = DeviceBuffer(matrix_total);
    to_.vectors_ = DeviceBuffer(vector_floats(weights) * sizeof(float));
    for (Staging& staging : staging_) {
      if (source == WeightSource::file) staging.host = PinnedBuffer(staging_bytes_);
      staging.device = DeviceBuffer(staging_bytes_);
    }
  }

  DeviceMatrix matrix(const Matrix& matrix) {
    if (matrix.empty()) return {};
    const Layout l = layout(matrix.type);
    DeviceMatrix result{to_.matrices_.as<std::uint8_t>() + matrix_at_,
                        matrix.rows,
                        matrix.cols,
                        device_row_bytes(l, matrix.cols),
                        matrix.type,
                        l.segment_elements};
    auto* const out = to_.matrices_.as<std::uint8_t>() + matrix_at_;
    matrix_at_ += matrix_bytes(matrix);
    const std::size_t file_row = row_bytes(matrix.type, matrix.cols);
    const auto step = static_cast<std::uint32_t>(
        std::max<std::size_t>(1, std::min<std::size_t>(staging_bytes_ / file_row, matrix.rows)));
    ++seed_;
    for (std::uint32_t row = 0; row < matrix.rows; row += step) {
      const std::uint32_t rows = std::min(step, matrix.rows - row);
      Staging& staging = staging_[turn_];
      turn_ ^= 1U;
      auto* const device = staging.device.as<std::uint8_t>();
      if (source_ == WeightSource::file) {
        check(cudaEventSynchronize(staging.copied), "uploading weights");
        std::memcpy(staging.host.as<std::byte>(), matrix.data.data() + row * file_row,
                    rows * file_row);
        check(cudaMemcpyAsync(device, staging.host.as<std::byte>(), rows * file_row,
                              cudaMemcpyHostToDevice, stream_),
              "uploading weights");
        check(cudaEventRecord(staging.copied, stream_), "uploading weights");
      } else {
        launch_random_blocks(matrix.type, matrix.cols, device, row, rows, seed_, stream_);
      }
      launch_repack(matrix.type, matrix.cols, device, out + std::size_t{row} * result.row_bytes,
                    rows, stream_);
      check(cudaGetLastError(), "rearranging weights");
    }
    if (on_progress_) {
      on_progress_(static_cast<double>(matrix_at_) / static_cast<double>(to_.matrices_.size()));
    }
    return result;
  }

  const float* vector(const Vector& vector) {
    if (vector.empty()) return nullptr;
    float* const out = to_.vectors_.as<float>() + vector_at_;
    vector_at_ += round_up(vector.size() * sizeof(float)) / sizeof(float);
    check(cudaMemcpyAsync(out, vector.data(), vector.size() * sizeof(float), cudaMemcpyHostToDevice,
                          stream_),
          "uploading norms and biases");
    return out;
  }

  Norm norm(const Vector& weight, const Vector& bias, float epsilon) {
    return {vector(weight), vector(bias), epsilon};
  }

  void finish() const { stream_.synchronize(); }

 private:
  struct Staging {
    PinnedBuffer host;
    DeviceBuffer device;
    Event copied;
  };
  DeviceWeights& to_;
  const std::function<void(double)>& on_progress_;
  WeightSource source_;
  Stream stream_;
  Staging staging_[2];
  std::size_t staging_bytes_ = 0;
  std::uint32_t turn_ = 0;
  std::uint64_t seed_ = 0;
  std::size_t matrix_at_ = 0;
  std::size_t vector_at_ = 0;
};

DeviceWeights::DeviceWeights(const Decoder& decoder, WeightSource source,
                             const std::function<void(double)>& on_progress) {
  const Weights& weights = decoder.weights;
  const float epsilon = decoder.spec.norm_epsilon;
  Uploader uploader(*this, weights, source, on_progress);
  embedding_ = uploader.matrix(weights.embedding);
  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    const AttentionWeights& a = weights.layers[i].attention;
    const FeedForwardWeights& f = weights.layers[i].feed_forward;
    DeviceLayer& to = layers_.emplace_back();
    to.q = uploader.matrix(a.q);
    to.k = uploader.matrix(a.k);
    to.v = uploader.matrix(a.v);
    to.o = uploader.matrix(a.o);
    to.gate = uploader.matrix(f.gate);
    to.up = uploader.matrix(f.up);
    to.down = uploader.matrix(f.down);
    const MixtureWeights& m = f.mixture;
    mixtures_.push_back({uploader.matrix(m.router), uploader.matrix(m.gate), uploader.matrix(m.up),
                         uploader.matrix(m.down), uploader.matrix(m.shared_gate),
                         uploader.matrix(m.shared_up), uploader.matrix(m.shared_down),
                         uploader.matrix(m.shared_router)});

    BlockNorms& norms = norms_.emplace_back();
    norms.attention = uploader.norm(a.norm, a.norm_bias, epsilon);
    norms.attention_post = uploader.norm(a.post_norm, {}, epsilon);
    norms.feed_forward = uploader.norm(f.norm, f.norm_bias, epsilon);
    norms.feed_forward_post = uploader.norm(f.post_norm, {}, epsilon);
    const bool whole_rows = a.q_norm.size() > decoder.spec.layers[i].head_dim;
    (whole_rows ? norms.q_row.weight : to.q_norm) = uploader.vector(a.q_norm);
    (whole_rows ? norms.k_row.weight : to.k_norm) = uploader.vector(a.k_norm);
    norms.q_row.epsilon = norms.k_row.epsilon = epsilon;

    to.attention_norm = norms.attention.weight;
    to.feed_forward_norm = norms.feed_forward.weight;
    to.q_bias = uploader.vector(a.q_bias);
    to.k_bias = uploader.vector(a.k_bias);
    to.v_bias = uploader.vector(a.v_bias);
    to.o_bias = uploader.vector(a.o_bias);
    to.gate_bias = uploader.vector(f.gate_bias);
    to.up_bias = uploader.vector(f.up_bias);
    to.down_bias = uploader.vector(f.down_bias);
  }
  head_ = tied(weights) ? embedding_ : uploader.matrix(weights.head);
  final_norm_ = uploader.norm(weights.output_norm, weights.output_norm_bias, epsilon);
  uploader.finish();
}

}  // namespace edgerunner::cuda
