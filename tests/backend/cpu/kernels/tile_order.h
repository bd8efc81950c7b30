#pragma once

#include "backend/cpu/matmul.h"

namespace edgerunner::test {

// A product as matmul.h has it for bfloat16 tiles (Isa::amx), plainly.
void run_in_tile_order(const cpu::Product& product);

// What an instruction set's products are held to, bit for bit: that, or the portable kernels.
void run_reference(Isa isa, const cpu::Product& product);

}  // namespace edgerunner::test
