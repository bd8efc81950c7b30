#pragma once

#include <cstddef>

namespace edgerunner {

// Throws Error(invalid_argument) where a text to encode, or what normalising makes of it, has more
// bytes than is supported at once.
void require_encodable(std::size_t bytes);

}  // namespace edgerunner
