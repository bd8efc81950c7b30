#include "chat/jinja/budget.h"

#include <fmt/format.h>

#include <algorithm>

#include "edgerunner/error.h"

namespace edgerunner::jinja {

std::string_view Budget::copy(std::string_view text) {
  if (text.empty()) return {};
  char* const bytes = array<char>(text.size());
  std::copy(text.begin(), text.end(), bytes);
  return {bytes, text.size()};
}

void Budget::fail_steps() const {
  throw Error(ErrorCode::out_of_memory,
              fmt::format("the chat template takes more than {} steps for this conversation; it "
                          "may never end",
                          limits_.steps));
}

void Budget::fail_bytes() const {
  throw Error(ErrorCode::out_of_memory,
              fmt::format("the chat template takes more than {} MB for this conversation",
                          limits_.bytes >> 20));
}

}  // namespace edgerunner::jinja
