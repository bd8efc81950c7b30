#include "cli/output.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "edgerunner/error.h"

namespace edgerunner::cli {

void write_output(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      throw Error(ErrorCode::io, fmt::format("cannot write to standard output: {}",
                                             std::generic_category().message(errno)));
    }
  }
}

void write_json(const nlohmann::ordered_json& document) {
  write_output(document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
               "\n");
}

void show_progress(std::string_view line) {
  if (::isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\033[K{}", line);
}

void clear_progress() { show_progress(""); }

std::function<void(double fraction)> loading_progress() {
  return [](double fraction) {
    if (fraction < 1) {
      show_progress(fmt::format("loading ... {:.0f} %", 100 * fraction));
    } else {
      clear_progress();
    }
  };
}

}  // namespace edgerunner::cli
