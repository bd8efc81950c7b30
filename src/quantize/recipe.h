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

  // Whether a tensor that gets the type `chosen` is fitted where nothing is known of its
  // importance: where the type leaves a choice, and in Q4_1 and Q5_1 as they stand in for it.
  bool fits(ElementType chosen) const;
};

// By name, without regard to case. Empty where there is none.
std::optional<Recipe> find_recipe(std::string_view name);
std::vector<std::string> recipe_names();

// What a mix goes by in a model as a whole.
struct ModelOutline {
  std::uint32_t layers = 1;
  std::uint32_t query_groups = 1;  // query heads for each KV head
  std::uint32_t experts = 0;       // 0 or 1: dense
  bool tied_head = false;          // the embedding is the head too

  static ModelOutline of(const gguf::File& model);
};

// Chooses types for the tensors of one model.
class TypeChooser {
 public:
  TypeChooser(const ModelOutline& model, const Recipe& recipe) : recipe_(recipe), model_(model) {}

  // The tensor's own type where it stays as it is: vectors, routers, and what isn't a weight.
  ElementType choose(const gguf::Tensor& tensor) const;

 private:
  ElementType mixed(std::string_view name) const;

  Recipe recipe_;
  ModelOutline model_;
};

}  // namespace edgerunner
