#pragma once

#include <optional>
#include <string_view>

namespace edgerunner {

// What the processor and the operating system offer, read once.
struct CpuFeatures {
  bool avx2 = false;    // with FMA, F16C and BMI2: x86-64-v3
  bool avx512 = false;  // F, BW, CD, DQ, VL: x86-64-v4
  bool avx512_vnni = false;
  bool avx512_bf16 = false;
  bool amx = false;  // tiles of bfloat16; used where may_use_amx()
  bool neon = false;
  bool dotprod = false;
  bool i8mm = false;
};
const CpuFeatures& cpu_features();

// The instruction sets that kernels are written for, of each processor family the better one last.
//   scalar     portable C++
//   avx2       with FMA, F16C and BMI2
//   avx512     with VNNI and BF16
//   amx        that, and products of bfloat16 tiles (Sapphire Rapids and later)
//   neon       with the dot product instructions (Armv8.2-A and later)
//   neon_i8mm  those, and the matrix products of 8-bit integers
enum class Isa { scalar, avx2, avx512, amx, neon, neon_i8mm };
std::string_view name(Isa isa);

// Asks the system to let this process use AMX, once, and gives its answer. From then on Linux has
// every signal stack (sigaltstack) hold the state of tiles, some 11 KiB; it refuses where a thread
// has a smaller one already.
bool may_use_amx();

// The best set that this machine runs and this process may use, or the one that EDGERUNNER_ISA
// forces. Throws Error(invalid_argument) where the forced one is unknown, or can't be run or used.
Isa chosen_isa();

// The choice itself, for a machine that offers `features`.
Isa choose_isa(const CpuFeatures& features, std::optional<std::string_view> forced);

// Cores that this process may use: affinity mask, and cgroup quota rounded up. At least 1.
int available_cores();

}  // namespace edgerunner
