#include "backend/cpu/kv_pool.h"

#include <cstring>

namespace edgerunner::cpu {

std::size_t KvPool::page_bytes(const DecoderSpec& spec, KvPrecision precision) {
  std::size_t bytes = 0;
  for (const LayerSpec& layer : spec.layers) {
    bytes += KvHeadLayout{layer.head_dim, precision}.bytes() * layer.kv_heads;
  }
  return bytes;
}

KvPool::KvPool(const DecoderSpec& spec, KvPrecision precision, std::uint32_t pages)
    : page_stride_(page_bytes(spec, precision)), memory_(page_stride_ * pages) {
  std::size_t offset = 0;
  for (const LayerSpec& layer : spec.layers) {
    layers_.push_back({{layer.head_dim, precision}, offset});
    offset += layers_.back().layout.bytes() * layer.kv_heads;
  }
}

void KvPool::copy_page(PageId from, PageId to) {
  if (from == to) return;
  std::memcpy(memory_.data() + to * page_stride_, memory_.data() + from * page_stride_,
              page_stride_);
}

}  // namespace edgerunner::cpu
