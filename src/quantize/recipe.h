#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file.h"
#include "tensor/element_type.h"

namespace edgerunner {

// Which type each tensor of a model gets: one type for all matrices, or a mix that keeps the
// matrices finer whose errors cost most. docs/quantisation.md has the table.
struct Recipe {
  std::string_view name;    // "Q4_K_M"
  ElementType type;         // of most matrices
  bool mix;                 // some stay finer
  std::uint32_t file_type;  // general.file_type, by the numbers of the GGUF field
};

// By name, without regard to case. Empty where there is none.
std::optional<Recipe> find_recipe(std::string_view name);
std::vector<std::string> recipe_names();

// Chooses types for the tensors of one model.
class TypeChooser {
 public:
  TypeChooser(const gguf::File& model, const Recipe& recipe);

  // The tensor's own type where it stays as it is: vectors, routers, and what isn't a weight.
  ElementType choose(const gguf::Tensor& tensor) const;

 private:
  ElementType mixed(std::string_view name) const;

  Recipe recipe_;
  std::uint32_t layers_;
  bool tied_head_;              // the embedding is the head too
  std::uint32_t query_groups_;  // query heads for each KV head
};

}  // namespace edgerunner
