#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "arch/decoder.h"
#include "arch/weights.h"
#include "gguf/file.h"

namespace edgerunner {

// A low-rank update of a matrix (Hu et al. 2021): beside y = W x it adds scale * B (A x). Empty
// where an adapter leaves the matrix as it is.
struct LowRank {
  Matrix a;         // [rank, cols]
  Matrix b;         // [rows, rank]
  float scale = 1;  // alpha / rank, or 1 where the file states no alpha

  bool empty() const { return a.empty(); }
  std::uint32_t rank() const { return a.rows; }
};

// The matrices of a layer that adapters may update, and the head.
enum class LoraTarget : std::uint8_t { q, k, v, o, gate, up, down, head };
inline constexpr std::size_t kLayerTargets = 7;

// A LoRA adapter, read from a GGUF file as llama.cpp's converter of PEFT adapters writes them, and
// checked against the decoder that it is for. Its matrices are used in place, as the decoder's are,
// which stay as they are. Immutable.
//
// The file has general.type "adapter", adapter.type "lora", the decoder's general.architecture,
// adapter.lora.alpha, and for each updated tensor NAME a pair NAME.lora_a, [cols, rank], and
// NAME.lora_b, [rank, rows]; of token_embd.weight, whose rows are looked up, lora_a is [rank, rows]
// and lora_b [rank, cols]. Fused tensors are updated as one, rows in the order of the parts. A tied
// head is updated as output.weight; an update of the embedding leaves it alone, as in PEFT.
class LoraAdapter {
 public:
  // Throws Error(invalid_file) or Error(unsupported) naming the tensor or key.
  LoraAdapter(gguf::File file, const Decoder& decoder);

  const std::string& path() const { return file_.name(); }
  const std::string& name() const { return name_; }  // general.name, or empty
  float alpha() const { return alpha_; }
  std::uint32_t largest_rank() const { return largest_rank_; }
  std::uint64_t bytes() const { return file_.bytes(); }
  std::size_t layer_count() const { return layers_.size(); }  // of the decoder

  // The update of a layer's matrix; of the head whatever `layer` is.
  const LowRank& update(std::size_t layer, LoraTarget target) const {
    return target == LoraTarget::head ? head_ : layers_[layer][static_cast<std::size_t>(target)];
  }
  // Of the embedding: a row x of it is looked up in A, here [vocab, rank], not multiplied.
  const LowRank& embedding() const { return embedding_; }

 private:
  class Reader;

  gguf::File file_;
  std::string name_;
  float alpha_ = 0;
  std::uint32_t largest_rank_ = 0;
  LowRank embedding_;
  LowRank head_;
  std::vector<std::array<LowRank, kLayerTargets>> layers_;
};

}  // namespace edgerunner
