#include "arch/family.h"

namespace edgerunner {

// OLMo 2: norms after attention and feed-forward instead of before, RMSNorm over the whole row of
// queries and of keys.
Decoder read_olmo2(const Metadata& metadata, TensorReader& tensors) {
  return read_standard_decoder(metadata, tensors,
                               {.rope_layout = RopeLayout::half_split,
                                .qk_norm = QkNorm::whole_row,
                                .pre_norm = false,
                                .post_norm = true});
}

}  // namespace edgerunner
