#pragma once

// The tile registers: palette 1, eight of 16 rows of up to 64 bytes. (Intel 64 and IA-32
// Architectures Software Developer's Manual, volume 1, chapter 18.)

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace edgerunner::cpu {
namespace {

// Bytes of a row of each register, at most 64.
struct TileWidths {
  std::uint8_t of[8] = {64, 64, 64, 64, 64, 64, 64, 64};
};

// All eight of 16 rows, as long as this lives. The state costs a switch of threads 8 KiB while it
// is in use, so that a product releases it at its end.
class Tiles {
 public:
  explicit Tiles(const TileWidths& widths = {}) {
    Configuration configuration;
    for (int i = 0; i < 8; ++i) configuration.row_bytes[i] = widths.of[i];
    // Not the intrinsic: GCC's tells the compiler of the first 8 bytes alone.
    asm volatile("ldtilecfg %0" : : "m"(configuration));
  }
  ~Tiles() { _tile_release(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;

 private:
  struct alignas(64) Configuration {
    std::uint8_t palette = 1;
    std::uint8_t start_row = 0;
    std::uint8_t reserved[14] = {};
    std::uint16_t row_bytes[16] = {};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  };
  static_assert(sizeof(Configuration) == 64);
};

inline constexpr int kTileRows = 16;
inline constexpr std::size_t kTileBytes = 1024;

// Instructions by the number of a register, which the compilers' intrinsics want as a literal. They
// read and write memory in the order of the program.

// Rows of 64 bytes, `stride` bytes apart.
template <int kTile>
[[gnu::always_inline]] inline void load_tile(const void* p, std::size_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(p), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
[[gnu::always_inline]] inline void store_tile(void* p, std::size_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(p), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
[[gnu::always_inline]] inline void zero_tile() {
  asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
}
// sums[m][n] += a[m][0] * b[0][2n] + ..., of pairs of bfloat16: a row of `a` has 16 pairs, b[k]
// pair k for each n. The first and the second of the pairs are summed apart, each from zero on and
// pair after pair, and then added to each other and to the sum; subnormal numbers count as zero.
template <int kSums, int kA, int kB>
[[gnu::always_inline]] inline void multiply_tiles() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSums), "i"(kA), "i"(kB));
}

}  // namespace
}  // namespace edgerunner::cpu
