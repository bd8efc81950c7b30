#include "hub/models_folder.h"

#include "base/environment.h"
#include "edgerunner/error.h"

namespace edgerunner::hub {

std::optional<std::filesystem::path> find_models_folder() {
  using Path = std::filesystem::path;
  if (const auto own = environment("EDGERUNNER_CACHE")) return Path(*own) / "models";
  if (const auto cache = environment("XDG_CACHE_HOME"); cache && Path(*cache).is_absolute()) {
    return Path(*cache) / "edgerunner" / "models";
  }
  if (const auto home = environment("HOME")) {
    return Path(*home) / ".cache" / "edgerunner" / "models";
  }
  return std::nullopt;
}

std::filesystem::path models_folder() {
  if (auto folder = find_models_folder()) return *folder;
  throw Error(ErrorCode::io, "there is no folder for models; set EDGERUNNER_CACHE or HOME");
}

}  // namespace edgerunner::hub
