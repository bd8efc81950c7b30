#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace edgerunner {

// Has the system hold a mapped file in huge pages, so that reading it from end to end misses the
// TLB once in 2 MiB instead of once in 4 KiB (docs/performance.md, "Pages"). Linux reads a file
// into huge pages from version 6.16 on ext4, and on XFS, where one process reads it from front to
// back; so a file that isn't in the system's cache is read here, and on_progress is called with the
// fraction that is done. There must be memory for it. What the cache holds in small pages Linux
// leaves so: such parts of a file are dropped from it and read once more, where that goes at 400
// MB/s and gives huge pages, for a second at most; the next process finds them as they are then,
// and goes on. The contents stay as they are.
//
// `mapping` is the whole file, mapped read-only. Whether all of it has been read here: not where
// the cache has it already, as far as can be told, or the system has no such pages.
bool read_into_huge_pages(int descriptor, std::span<const std::byte> mapping,
                          const std::function<void(double)>& on_progress = {});

}  // namespace edgerunner
