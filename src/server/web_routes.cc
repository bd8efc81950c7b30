#include "server/web_routes.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "server/web_files.h"

namespace edgerunner::server {
namespace {

// The page loads nothing from elsewhere and runs no script but its own, whatever a model writes.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

std::string_view content_type(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  return "text/javascript; charset=utf-8";
}

}  // namespace

void add_web_routes(Router& router) {
  for (const WebFile& file : web_files()) {
    const std::string path = file.name == "index.html" ? "/" : fmt::format("/{}", file.name);
    router.add(
        "GET", path,
        [&file](const std::shared_ptr<Exchange>& exchange) {
          exchange->respond({.content_type = std::string(content_type(file.name)),
                             .body = std::string(file.text),
                             .headers = {{"Content-Security-Policy", kPolicy},
                                         {"X-Content-Type-Options", "nosniff"},
                                         {"Cache-Control", "no-cache"}}});
        },
        Router::Access::anyone);
  }
}

}  // namespace edgerunner::server
