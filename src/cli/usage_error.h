#pragma once

#include <stdexcept>

namespace edgerunner::cli {

// The command line itself is wrong: exit status 2, where failed work gives 1.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace edgerunner::cli
