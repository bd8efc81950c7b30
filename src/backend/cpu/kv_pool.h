#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arch/decoder_spec.h"
#include "backend/cpu/kv_layout.h"
#include "backend/cpu/lazy_memory.h"
#include "backend/executor.h"

namespace edgerunner::cpu {

// The pages of the KV cache, [pages][layers][kv_heads] blocks of KvHeadLayout: a page is one piece
// of memory, so that the process grows with the pages in use, and a layer's part of it, which
// attention reads at a time, is one run.
class KvPool {
 public:
  KvPool(const DecoderSpec& spec, KvPrecision precision, std::uint32_t pages);

  static std::size_t page_bytes(const DecoderSpec& spec, KvPrecision precision);

  const KvHeadLayout& layout(std::size_t layer) const { return layers_[layer].layout; }
  std::size_t page_stride() const { return page_stride_; }
  std::byte* block(std::size_t layer, std::uint32_t kv_head, PageId page) {
    const Layer& place = layers_[layer];
    return memory_.data() + page * page_stride_ + place.offset + kv_head * place.layout.bytes();
  }

  void copy_page(PageId from, PageId to);

 private:
  struct Layer {
    KvHeadLayout layout;
    std::size_t offset;  // in a page
  };

  std::vector<Layer> layers_;
  std::size_t page_stride_;
  LazyMemory memory_;
};

}  // namespace edgerunner::cpu
