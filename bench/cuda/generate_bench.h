#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "arch/decoder.h"

namespace edgerunner::cuda {

// Measures generation as the runtime asks for it, tokens chosen on the device in bursts of 32:
// greedy, sampled, and sampled with penalties. A line of JSON for each and every depth.
void bench_generate(std::string_view shape, std::string_view type, const Decoder& decoder,
                    const std::vector<std::uint32_t>& depths);

}  // namespace edgerunner::cuda
