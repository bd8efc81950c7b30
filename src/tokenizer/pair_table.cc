#include "tokenizer/pair_table.h"

#include <bit>

#include "tokenizer/string_index.h"

namespace edgerunner {

PairTable::PairTable(std::size_t capacity)
    : slots_(std::bit_ceil(capacity < 8 ? std::size_t{16} : capacity + capacity / 2)),
      mask_(slots_.size() - 1),
      shift_(64 - std::countr_zero(slots_.size())),
      seed_(random_seed()) {}

void PairTable::insert(TokenId left, TokenId right, Merge merge) {
  const std::uint64_t wanted = key(left, right);
  for (std::size_t at = home(wanted);; at = (at + 1) & mask_) {
    if (slots_[at].key == wanted) return;
    if (slots_[at].key == kEmpty) {
      slots_[at] = {wanted, merge};
      return;
    }
  }
}

}  // namespace edgerunner
