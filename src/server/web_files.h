#pragma once

#include <span>
#include <string_view>

namespace edgerunner::server {

// A file of src/server/web, which the build puts into the program.
struct WebFile {
  std::string_view name;
  std::string_view text;
};

std::span<const WebFile> web_files();

}  // namespace edgerunner::server
