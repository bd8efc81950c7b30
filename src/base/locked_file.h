#pragma once

#include <filesystem>

namespace edgerunner {

// Opens a file to read and write, which is made where there is none, and locks it until the
// descriptor and its duplicates are closed. -1 with errno, EWOULDBLOCK where somebody else has
// locked it. Where the file system has no locks, it goes without.
int open_locked(const std::filesystem::path& path);

}  // namespace edgerunner
