#include "base/cpu_features.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>

#include "base/environment.h"
#include "edgerunner/error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace edgerunner {
namespace {

#if defined(__x86_64__)

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// Zeros where the processor doesn't know the leaf.
Registers cpuid(unsigned leaf, unsigned subleaf) {
  Registers r;
  __get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx);
  return r;
}

// Extended control register 0: the register files that the operating system saves and restores.
// In assembly because the intrinsic needs -mxsave, which would hold for the whole file.
std::uint64_t enabled_state() {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<std::uint64_t>(high) << 32) | low;
}

constexpr bool has_all(std::uint64_t value, std::uint64_t bits) { return (value & bits) == bits; }

// Bit numbers: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2A, CPUID.
CpuFeatures detect() {
  constexpr unsigned kOsxsave = 1U << 27;
  constexpr unsigned kLeaf1Ecx = (1U << 12) | (1U << 22) | (1U << 28) | (1U << 29);  // FMA, MOVBE,
                                                                                     // AVX, F16C
  constexpr unsigned kLeaf7Ebx = (1U << 3) | (1U << 5) | (1U << 8);  // BMI1, AVX2, BMI2
  constexpr unsigned kLzcnt = 1U << 5;
  constexpr unsigned kAvx512 =
      (1U << 16) | (1U << 17) | (1U << 28) | (1U << 30) | (1U << 31);  // F, DQ, CD, BW, VL
  constexpr unsigned kVnni = 1U << 11;
  constexpr unsigned kBf16 = 1U << 5;
  constexpr unsigned kAmx = (1U << 22) | (1U << 24);  // BF16, TILE
  constexpr std::uint64_t kYmmState = 0x06;           // xmm, upper halves of ymm
  constexpr std::uint64_t kZmmState = 0xE6;           // those, mask registers, both parts of zmm
  constexpr std::uint64_t kTileState = 0x60000;       // configuration and data of tiles

  CpuFeatures features;
  const Registers leaf1 = cpuid(1, 0);
  if (!has_all(leaf1.ecx, kOsxsave)) return features;
  const std::uint64_t state = enabled_state();
  const Registers leaf7 = cpuid(7, 0);
  features.avx2 = has_all(state, kYmmState) && has_all(leaf1.ecx, kLeaf1Ecx) &&
                  has_all(leaf7.ebx, kLeaf7Ebx) && has_all(cpuid(0x80000001, 0).ecx, kLzcnt);
  features.avx512 = features.avx2 && has_all(state, kZmmState) && has_all(leaf7.ebx, kAvx512);
  features.avx512_vnni = features.avx512 && has_all(leaf7.ecx, kVnni);
  features.avx512_bf16 = features.avx512 && leaf7.eax >= 1 && has_all(cpuid(7, 1).eax, kBf16);
  features.amx = features.avx512_vnni && features.avx512_bf16 && has_all(state, kTileState) &&
                 has_all(leaf7.edx, kAmx);
  return features;
}

#elif defined(__aarch64__)

CpuFeatures detect() {
  CpuFeatures features;
  features.neon = true;  // part of the base architecture
#if defined(__linux__)
  features.dotprod = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
  features.i8mm = (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
#endif
  return features;
}

#else

CpuFeatures detect() { return {}; }

#endif

constexpr std::array kIsas = {Isa::scalar, Isa::avx2, Isa::avx512,
                              Isa::amx,    Isa::neon, Isa::neon_i8mm};

bool runs(const CpuFeatures& features, Isa isa) {
  switch (isa) {
    case Isa::scalar:
      return true;
    case Isa::avx2:
      return features.avx2;
    case Isa::avx512:
      return features.avx512 && features.avx512_vnni && features.avx512_bf16;
    case Isa::amx:
      return features.amx;
    case Isa::neon:
      return features.neon && features.dotprod;
    case Isa::neon_i8mm:
      return features.neon && features.dotprod && features.i8mm;
  }
  return false;
}

}  // namespace

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = detect();
  return features;
}

std::string_view name(Isa isa) {
  switch (isa) {
    case Isa::scalar:
      return "scalar";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
    case Isa::amx:
      return "amx";
    case Isa::neon:
      return "neon";
    case Isa::neon_i8mm:
      return "neon_i8mm";
  }
  return "unknown";
}

Isa choose_isa(const CpuFeatures& features, std::optional<std::string_view> forced) {
  Isa best = Isa::scalar;
  std::string known;
  for (const Isa isa : kIsas) {
    if (forced == name(isa)) {
      if (runs(features, isa)) return isa;
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("EDGERUNNER_ISA={} asks for instructions that this machine doesn't "
                              "have; unset it to use the best that it has",
                              *forced));
    }
    if (runs(features, isa)) best = isa;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name(isa));
  }
  if (forced) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("EDGERUNNER_ISA={} is not an instruction set; choose one of {}",
                            *forced, known));
  }
  return best;
}

bool may_use_amx() {
#if defined(__x86_64__) && defined(__linux__)
  // Linux documentation, "Using XSTATE features in user space applications"; the numbers are here
  // because headers before Linux 5.16 lack them.
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  static const bool may =
      cpu_features().amx && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return may;
#else
  return false;
#endif
}

namespace {

Isa choose() {
  const std::optional<std::string> forced = environment("EDGERUNNER_ISA");
  CpuFeatures features = cpu_features();
  const Isa isa = choose_isa(features, forced);
  if (isa != Isa::amx || may_use_amx()) return isa;
  if (forced) {
    throw Error(
        ErrorCode::invalid_argument,
        "EDGERUNNER_ISA=amx: the system doesn't let this process use AMX; set it to avx512, "
        "or unset it to use the best that is allowed");
  }
  features.amx = false;
  return choose_isa(features, std::nullopt);
}

}  // namespace

Isa chosen_isa() {
  static const Isa isa = choose();
  return isa;
}

}  // namespace edgerunner
