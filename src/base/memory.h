#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace edgerunner {

// Bytes that this process can still allocate without swapping: what the system says is available
// (file cache included, since it can be dropped), or what its control group leaves it, whichever is
// less. Nullopt where the system doesn't say.
std::optional<std::uint64_t> available_memory();

// The most memory that this process has had resident at once, mapped files included, in bytes.
std::optional<std::uint64_t> peak_resident_bytes();

// The value of a line "NAME:   123 kB", as /proc/meminfo and /proc/PID/status write it, in bytes.
std::optional<std::uint64_t> kilobyte_line(std::string_view text, std::string_view name);

}  // namespace edgerunner
