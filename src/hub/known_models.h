#pragma once

#include <span>
#include <string_view>

namespace edgerunner::hub {

// A model that has a short name.
struct KnownModel {
  std::string_view name;
  std::string_view source;  // hf:OWNER/REPO/FILE
  std::string_view sha256;  // of the file; empty: what the server states is used
};
std::span<const KnownModel> known_models();

// nullptr where no model has this name.
const KnownModel* find_known_model(std::string_view name);

}  // namespace edgerunner::hub
