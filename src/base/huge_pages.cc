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

using Clock = std::chrono::steady_clock;

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kLeast = 16 * kHugePage;  // the processor's caches hold much of smaller ones
constexpr std::size_t kPiece = 8 * kHugePage;   // read again at once
// What reading the header and the begins of tensors has brought of most files.
constexpr double kMostDropped = 512e6;
constexpr double kLeastBytesPerSecond = 4e8;  // slower, a start would wait for long
constexpr std::chrono::seconds kMostTime{1};  // of reading again

// How much of a mapping, of kLeast or more, is in the system's cache, by pages spread evenly over
// it. Two standard errors of 256 are 4 %: near enough, as the worst that a wrong answer does is to
// read a file once more, or not to. Asking about every page of 2.4 GB took 40 ms, about these 0.4
// ms (2026-11-30).
double cached_share(std::span<const std::byte> mapping) {
  constexpr std::size_t kSamples = 256;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t stride = mapping.size() / kSamples / page * page;
  std::size_t cached = 0;
  for (std::size_t i = 0; i < kSamples; ++i) {
    unsigned char flags = 0;
    const std::byte* const sample = &mapping[i * stride];
    if (::mincore(const_cast<std::byte*>(sample), page, &flags) == 0) cached += flags & 1U;
  }
  return static_cast<double>(cached) / kSamples;
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

// The bytes of the huge pages that a part of a mapping could fill.
std::size_t whole_pages(std::span<const std::byte> part) {
  return part.size() / kHugePage * kHugePage;
}

// Reads a piece of a mapping from the file, as far as the cache lacks it.
bool read_in(std::span<const std::byte> piece) {
#if defined(MADV_POPULATE_READ)
  return advise(piece, MADV_POPULATE_READ);
#else
  static_cast<void>(piece);
  return false;
#endif
}

// Drops a piece of the file from the cache.
bool drop(int descriptor, std::size_t offset, std::span<const std::byte> piece) {
  advise(piece, MADV_DONTNEED);  // what a process has mapped would not be dropped
  return ::posix_fadvise(descriptor, static_cast<off_t>(offset), static_cast<off_t>(piece.size()),
                         POSIX_FADV_DONTNEED) == 0;
}

// Drops it and reads it once more. Whether that went fast.
bool read_again(int descriptor, std::size_t offset, std::span<const std::byte> piece) {
  const auto start = Clock::now();
  if (!drop(descriptor, offset, piece) || !read_in(piece)) return false;
  const std::chrono::duration<double> time = Clock::now() - start;
  return static_cast<double>(piece.size()) > time.count() * kLeastBytesPerSecond;
}

// Calls body(offset, piece) for piece after piece, until it returns false.
template <class Body>
bool for_pieces(std::span<const std::byte> mapping, const Body& body) {
  for (std::size_t begin = 0; begin < mapping.size(); begin += kPiece) {
    if (!body(begin, mapping.subspan(begin, std::min(kPiece, mapping.size() - begin)))) {
      return false;
    }
  }
  return true;
}

// Exchanges what the cache holds in small pages.
void exchange_small_pages(int descriptor, std::span<const std::byte> mapping) {
  const auto end = Clock::now() + kMostTime;
  std::size_t huge = 0;
  for_pieces(mapping, [&](std::size_t offset, std::span<const std::byte> piece) {
    if (Clock::now() > end) return false;
    const std::size_t wanted = huge + whole_pages(piece);
    huge = touch(mapping, piece);
    if (huge >= wanted) return true;
    if (!read_again(descriptor, offset, piece)) return false;
    const std::size_t before = std::exchange(huge, touch(mapping, piece));
    return huge > before;  // or the system has no such pages, or no more
  });
}

}  // namespace

bool read_into_huge_pages(int descriptor, std::span<const std::byte> mapping,
                          const std::function<void(double)>& on_progress) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(mapping.data()) % kHugePage == 0;
  if (!aligned || mapping.size() < kLeast || !advise(mapping, MADV_HUGEPAGE)) return false;
  const double cached = cached_share(mapping);
  if (cached <= 0.9) {
    // What has been read of it would have the system go on as it began, in small pages.
    if (cached < 0.5 || cached * static_cast<double>(mapping.size()) < kMostDropped) {
      drop(descriptor, 0, mapping);
    }
    return for_pieces(mapping, [&](std::size_t offset, std::span<const std::byte> piece) {
      if (!read_in(piece)) return false;
      if (offset == 0 && touch(mapping, piece) == 0) return false;  // there are none
      if (on_progress) {
        const std::size_t done = offset + piece.size();
        on_progress(static_cast<double>(done) / static_cast<double>(mapping.size()));
      }
      return true;
    });
  }
  if (touch(mapping, mapping) < whole_pages(mapping)) {
    advise(mapping, MADV_DONTNEED);
    exchange_small_pages(descriptor, mapping);
  }
  return false;  // nobody has looked at every page
}

}  // namespace edgerunner
