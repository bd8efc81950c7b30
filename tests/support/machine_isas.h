#pragma once

#include <vector>

#include "base/cpu_features.h"
#include "base/environment.h"

namespace edgerunner::test {

// The instruction sets that this machine runs, or that alone which EDGERUNNER_ISA forces.
inline std::vector<Isa> machine_isas() {
  if (environment("EDGERUNNER_ISA")) return {chosen_isa()};
  const CpuFeatures& cpu = cpu_features();
  std::vector<Isa> isas{Isa::scalar};
  if (cpu.avx2) isas.push_back(Isa::avx2);
  if (cpu.avx512 && cpu.avx512_vnni && cpu.avx512_bf16) isas.push_back(Isa::avx512);
  if (may_use_amx()) isas.push_back(Isa::amx);
  if (cpu.neon && cpu.dotprod) isas.push_back(Isa::neon);
  if (cpu.neon && cpu.dotprod && cpu.i8mm) isas.push_back(Isa::neon_i8mm);
  return isas;
}

}  // namespace edgerunner::test
