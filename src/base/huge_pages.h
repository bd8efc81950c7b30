#pragma once

#include <cstddef>
#include <span>

namespace edgerunner {

// Asks the system to hold a mapped file in huge pages, so that reading it from end to end misses
// the TLB once in 2 MiB instead of once in 4 KiB: SmolLM2 decodes about a tenth faster
// (docs/performance.md). Linux reads a file into huge pages from version 6.16 on ext4, and on XFS,
// but leaves what it holds in small ones already. Such a file is dropped from the cache and read
// once more, as long as that goes at a gigabyte a second and gives huge pages; the next process
// finds it as it is then. Without effect on the contents, nor any at all where the system has no
// such pages.
//
// `mapping` is the whole file, mapped read-only.
void prefer_huge_pages(int descriptor, std::span<const std::byte> mapping);

}  // namespace edgerunner
