#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "edgerunner/error.h"

namespace edgerunner::test {

// Counts what happens to files: each is taken, or refused with an error that blames the file.
struct Outcomes {
  int taken = 0;
  int refused = 0;

  void count(const std::string& what, const std::function<void()>& action) {
    try {
      action();
      ++taken;
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::invalid_file || error.code() == ErrorCode::unsupported)
          << what << ": " << error.what();
      ++refused;
    }
  }
};

}  // namespace edgerunner::test
