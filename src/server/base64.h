#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace edgerunner::server {

// RFC 4648, section 4, with padding.
std::string to_base64(std::span<const std::byte> bytes);

}  // namespace edgerunner::server
