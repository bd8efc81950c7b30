#include "base/huge_pages.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "base/advise.h"

namespace edgerunner {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kLeast = 16 * kHugePage;  // the processor's caches hold much of smaller ones
constexpr std::size_t kPiece = 8 * kHugePage;   // read again at once
constexpr double kLeastBytesPerSecond = 1e9;

// Whether nine tenths of a mapping, of kLeast or more, are in the system's cache, by pages spread
// evenly over it. Two standard errors of 256 are 4 %: near enough, as the worst that a wrong answer
// does is to read a file once more, or not to. Asking about every page of 2.4 GB took 40 ms, about
// these 0.4 ms (2026-11-30).
bool is_cached(std::span<const std::byte> mapping) {
  constexpr std::size_t kSamples = 256;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t stride = mapping.size() / kSamples / page * page;
  std::size_t cached = 0;
  for (std::size_t i = 0; i < kSamples; ++i) {
    unsigned char flags = 0;
    const std::byte* const sample = &mapping[i * stride];
    if (::mincore(const_cast<std::byte*>(sample), page, &flags) != 0) return false;
    cached += flags & 1U;
  }
  return cached * 10 > kSamples * 9;
}

// Touches each huge page of a part of a mapping, and says how many bytes of the mapping the process
// has in huge pages.
std::size_t touch(std::span<const std::byte> mapping, std::span<const std::byte> part) {
  for (std::size_t i = 0; i < part.size(); i += kHugePage) {
    static_cast<void>(*static_cast<const volatile std::byte*>(&part[i]));
  }
  const std::string start = fmt::format("{:x}-", reinterpret_cast<std::uintptr_t>(mapping.data()));
  std::ifstream smaps("/proc/self/smaps");
  std::string line;
  bool found = false;
  while (std::getline(smaps, line)) {
    if (!found) {
      found = line.starts_with(start);
      continue;
    }
    constexpr std::string_view kKey = "FilePmdMapped:";
    if (line.starts_with(kKey)) {
      return std::size_t{std::strtoull(line.c_str() + kKey.size(), nullptr, 10)} << 10;
    }
    if (line.starts_with("VmFlags:")) break;
  }
  return 0;
}

// Drops a piece of the file from the cache and reads it once more. Whether that went fast.
bool read_again(int descriptor, std::size_t offset, std::span<const std::byte> piece) {
#if defined(MADV_POPULATE_READ)
  const auto start = std::chrono::steady_clock::now();
  const auto size = static_cast<off_t>(piece.size());
  if (::posix_fadvise(descriptor, static_cast<off_t>(offset), size, POSIX_FADV_DONTNEED) != 0 ||
      !advise(piece, MADV_POPULATE_READ)) {
    return false;
  }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  return static_cast<double>(piece.size()) > time.count() * kLeastBytesPerSecond;
#else
  static_cast<void>(descriptor), static_cast<void>(offset), static_cast<void>(piece);
  return false;
#endif
}

}  // namespace

void prefer_huge_pages(int descriptor, std::span<const std::byte> mapping) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(mapping.data()) % kHugePage == 0;
  if (!aligned || mapping.size() < kLeast || !advise(mapping, MADV_HUGEPAGE)) return;
  if (!is_cached(mapping)) return;  // what is read from now on comes in huge pages
  if (touch(mapping, mapping) >= mapping.size() / 2) return;
  advise(mapping, MADV_DONTNEED);  // what a process has mapped would not be dropped
  std::size_t huge = 0;
  for (std::size_t begin = 0; begin < mapping.size(); begin += kPiece) {
    const auto piece = mapping.subspan(begin, std::min(kPiece, mapping.size() - begin));
    if (!read_again(descriptor, begin, piece)) return;
    const std::size_t before = std::exchange(huge, touch(mapping, piece));
    if (huge < before + piece.size() / 2) return;  // the system has no such pages, or no more
  }
}

}  // namespace edgerunner
