#include "base/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "edgerunner/error.h"

namespace edgerunner {
namespace {

constexpr auto kVariables = std::to_array<EnvironmentVariable>({
    {"EDGERUNNER_CACHE", "the folder of fetched models and more; by default ~/.cache/edgerunner"},
    {"EDGERUNNER_ISA",
     "forces the instruction set of the CPU kernels: scalar, avx2, avx512, amx, neon or neon_i8mm"},
    {"HF_ENDPOINT", "where hf: models are fetched from; by default https://huggingface.co"},
    {"HF_TOKEN", "an access token for HF_ENDPOINT, sent nowhere else"},
    {"HOME", "the user's folder"},
    {"XDG_CACHE_HOME", "the folder of caches; by default ~/.cache"},
});

}  // namespace

std::span<const EnvironmentVariable> environment_variables() { return kVariables; }

std::optional<std::string> environment(std::string_view name) {
  const auto entry =
      std::find_if(kVariables.begin(), kVariables.end(),
                   [&](const EnvironmentVariable& variable) { return variable.name == name; });
  if (entry == kVariables.end()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("environment variable {} is not in the table of environment.cc", name));
  }
  const char* const value = std::getenv(std::string(name).c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

}  // namespace edgerunner
