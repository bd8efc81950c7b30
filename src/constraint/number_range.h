#pragma once

#include <optional>
#include <string>

#include "constraint/grammar.h"

namespace edgerunner {

// Bounds of a number; a bound that is not there does not bind.
struct NumberBounds {
  std::optional<double> least;
  bool least_excluded = false;
  std::optional<double> most;
  bool most_excluded = false;
  bool any() const { return least || most; }
};

// Numbers between bounds, written without an exponent; with a fraction unless `integer`. No way at
// all (GrammarBuilder::kNothing) where there is none. Throws Error(invalid_argument) for bounds
// beyond what 18 digits hold.
NodeId number_between(GrammarBuilder& builder, const NumberBounds& bounds, bool integer,
                      NodeId next);

}  // namespace edgerunner
