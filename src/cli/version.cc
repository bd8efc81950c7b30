#include "cli/version.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "backend/executor.h"
#include "base/cpu_features.h"
#include "cli/build_commit.h"

namespace edgerunner::cli {
namespace {

// The sets that kernels are compiled for, on this kind of processor.
std::vector<std::string_view> compiled_sets() {
#if defined(__x86_64__)
  return {name(Isa::scalar), name(Isa::avx2), name(Isa::avx512), name(Isa::amx)};
#elif defined(__aarch64__)
  return {name(Isa::scalar), name(Isa::neon), name(Isa::neon_i8mm)};
#else
  return {name(Isa::scalar)};
#endif
}

std::vector<std::string_view> backends() {
  std::vector<std::string_view> names = {"cpu", "reference"};
  if (EDGERUNNER_HAS_CUDA != 0) names.emplace_back("cuda");
  return names;
}

}  // namespace

std::string version_text() {
  const bool idle_cuda = EDGERUNNER_HAS_CUDA != 0 && !cuda_available();
  return fmt::format(
      "edgerunner {}\ncommit {}\ncompiler {}\ninstruction sets {}; {} chosen\nbackends {}{}",
      kVersion, EDGERUNNER_COMMIT, EDGERUNNER_COMPILER, fmt::join(compiled_sets(), ", "),
      name(chosen_isa()), fmt::join(backends(), ", "), idle_cuda ? " (no GPU found)" : "");
}

nlohmann::ordered_json version_json() {
  return {{"version", kVersion},
          {"commit", EDGERUNNER_COMMIT},
          {"compiler", EDGERUNNER_COMPILER},
          {"instruction_sets", compiled_sets()},
          {"instruction_set", name(chosen_isa())},
          {"backends", backends()},
          {"gpu", cuda_available()}};
}

}  // namespace edgerunner::cli
