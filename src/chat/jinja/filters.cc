#include <array>

#include "chat/jinja/builtins.h"

namespace edgerunner::jinja {

Filter find_filter(std::string_view name) {
  const std::array<std::span<const Named<Filter>>, 4> tables = {
      text_filters(), sequence_filters(), selecting_filters(), value_filters()};
  for (const auto& table : tables) {
    if (const Named<Filter>* const found = find_named(table, name)) return found->call;
  }
  return nullptr;
}

}  // namespace edgerunner::jinja
