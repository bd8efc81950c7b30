#include "tokenizer/text_limit.h"

#include <fmt/format.h>

#include "edgerunner/error.h"

namespace edgerunner {

void require_encodable(std::size_t bytes) {
  // Positions are counted in 32 bits, and normalising can triple a text.
  constexpr std::size_t kLongestText = std::size_t{1} << 30;
  if (bytes > kLongestText) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a text of {} bytes is too long to encode at once; the limit is {}",
                            bytes, kLongestText));
  }
}

}  // namespace edgerunner
