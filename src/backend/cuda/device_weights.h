#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "arch/decoder.h"
#include "backend/cuda/device.h"
#include "backend/cuda/segment.h"

namespace edgerunner::cuda {

// Where the values of the matrices come from.
enum class WeightSource {
  file,    // the decoder's mapped file
  random,  // made on the device from the shapes alone: for benchmarks, without a file
};

struct DeviceLayer {
  DeviceMatrix q, k, v, o, gate, up, down;
  // Vectors are null where the model has none.
  const float* attention_norm = nullptr;     // [dim]
  const float* feed_forward_norm = nullptr;  // [dim]
  const float* q_bias = nullptr;             // [heads * head_dim]
  const float* k_bias = nullptr;             // [kv_heads * head_dim]
  const float* v_bias = nullptr;             // [kv_heads * head_dim]
  const float* o_bias = nullptr;             // [dim]
  const float* q_norm = nullptr;             // [head_dim]
  const float* k_norm = nullptr;             // [head_dim]
  const float* gate_bias = nullptr;          // [ffn_dim]
  const float* up_bias = nullptr;            // [ffn_dim]
  const float* down_bias = nullptr;          // [dim]
};

// All weights of a decoder in device memory, in the element types of the file, uploaded once.
class DeviceWeights {
 public:
  // `on_progress`, which may be null, is called with the fraction of the bytes sent so far.
  DeviceWeights(const Decoder& decoder, WeightSource source,
                const std::function<void(double)>& on_progress = nullptr);

  const DeviceMatrix& embedding() const { return embedding_; }
  const DeviceMatrix& head() const { return head_; }  // the embedding itself where tied
  const float* output_norm() const { return output_norm_; }
  const std::vector<DeviceLayer>& layers() const { return layers_; }

 private:
  friend class Uploader;
  DeviceBuffer matrices_;
  DeviceBuffer vectors_;
  DeviceMatrix embedding_;
  DeviceMatrix head_;
  const float* output_norm_ = nullptr;
  std::vector<DeviceLayer> layers_;
};

// Bytes that DeviceWeights will allocate.
std::uint64_t device_weight_bytes(const Weights& weights);

}  // namespace edgerunner::cuda
