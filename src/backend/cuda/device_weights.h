#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "arch/decoder.h"
#include "backend/cuda/device.h"
#include "backend/cuda/norm.h"
#include "backend/cuda/segment.h"

namespace edgerunner::cuda {

// Where the values of the matrices come from.
enum class WeightSource {
  file,    // the decoder's mapped file
  random,  // made on the device from the shapes alone: for benchmarks, without a file
};

struct DeviceLayer {
  DeviceMatrix q, k, v, o, gate, up, down;  // no rows where the model has none
  // Vectors are null where the model has none.
  const float* attention_norm = nullptr;     // [dim]
  const float* feed_forward_norm = nullptr;  // [dim]
  const float* q_bias = nullptr;             // [heads * head_dim]
  const float* k_bias = nullptr;             // [kv_heads * head_dim]
  const float* v_bias = nullptr;             // [kv_heads * head_dim]
  const float* o_bias = nullptr;             // [dim]
  const float* q_norm = nullptr;             // [head_dim], of each head
  const float* k_norm = nullptr;             // [head_dim]
  const float* gate_bias = nullptr;          // [ffn_dim]
  const float* up_bias = nullptr;            // [ffn_dim]
  const float* down_bias = nullptr;          // [dim]
};

// A layer's norms (norm.h). Those of whole rows of queries and keys have no weight where each head
// is normed by itself, by DeviceLayer's vectors, or where there are none.
struct BlockNorms {
  Norm attention, attention_post, feed_forward, feed_forward_post;  // [dim]
  Norm q_row, k_row;  // [heads or kv_heads * head_dim]
};

// MixtureWeights; all empty where the layer is dense.
struct DeviceMixture {
  DeviceMatrix router, gate, up, down, shared_gate, shared_up, shared_down, shared_router;
};

// All weights of a decoder in device memory, in the element types of the file, uploaded once.
class DeviceWeights {
 public:
  // `on_progress`, which may be null, is called with the fraction of the bytes sent so far.
  DeviceWeights(const Decoder& decoder, WeightSource source,
                const std::function<void(double)>& on_progress = nullptr);

  const DeviceMatrix& embedding() const { return embedding_; }
  const DeviceMatrix& head() const { return head_; }  // the embedding itself where tied
  const float* output_norm() const { return final_norm_.weight; }
  const Norm& final_norm() const { return final_norm_; }
  const std::vector<DeviceLayer>& layers() const { return layers_; }
  const std::vector<BlockNorms>& norms() const { return norms_; }           // [layers]
  const std::vector<DeviceMixture>& mixtures() const { return mixtures_; }  // [layers]

 private:
  friend class Uploader;
  DeviceBuffer matrices_;
  DeviceBuffer vectors_;
  DeviceMatrix embedding_;
  DeviceMatrix head_;
  Norm final_norm_;
  std::vector<DeviceLayer> layers_;
  std::vector<BlockNorms> norms_;
  std::vector<DeviceMixture> mixtures_;
};

// Bytes that DeviceWeights will allocate.
std::uint64_t device_weight_bytes(const Weights& weights);

}  // namespace edgerunner::cuda
