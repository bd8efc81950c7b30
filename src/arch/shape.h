#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "arch/decoder.h"
#include "tensor/element_type.h"

namespace edgerunner {

// Decoders known by shape alone, for measuring speed without a file: every matrix has its name,
// type and dimensions but no data, which a backend must be asked to make up. Norms are ones.
// Throws Error(invalid_argument) for an unknown name, or a type whose blocks don't divide the rows.
Decoder shape_decoder(std::string_view name, ElementType type);

std::vector<std::string> shape_names();

}  // namespace edgerunner
