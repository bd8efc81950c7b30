#include "hub/resolve_model.h"

#include <fmt/format.h>

#include <filesystem>

#include "edgerunner/error.h"
#include "hub/model_source.h"
#include "hub/models_folder.h"

namespace edgerunner::hub {

std::string resolve_model(const std::string& argument) {
  std::error_code ignored;
  if (std::filesystem::exists(argument, ignored)) return argument;
  if (const auto source = find_source(argument)) {
    const std::filesystem::path path = models_folder() / source->file;
    if (std::filesystem::exists(path, ignored)) return path.string();
    throw Error(ErrorCode::io,
                fmt::format("the model '{}' hasn't been fetched; run: edgerunner pull {}", argument,
                            argument));
  }
  const auto folder = find_models_folder();
  const std::filesystem::path relative = std::filesystem::path(argument).lexically_normal();
  if (!folder || argument.empty() || relative.is_absolute() || *relative.begin() == "..") {
    return argument;
  }
  for (const char* end : {"", ".gguf"}) {
    std::filesystem::path path = *folder / relative;
    path += end;
    if (std::filesystem::is_regular_file(path, ignored)) return path.string();
  }
  return argument;
}

}  // namespace edgerunner::hub
