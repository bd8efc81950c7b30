#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "edgerunner/error.h"

namespace edgerunner::test {

// Expects `action` to throw Error(code) with one line of text that contains `part`.
template <typename Action>
void expect_error(ErrorCode code, const std::string& part, Action action) {
  try {
    action();
    ADD_FAILURE() << "no error, where one about \"" << part << "\" was expected";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.what(), ::testing::HasSubstr(part));
    EXPECT_THAT(error.what(), ::testing::Not(::testing::HasSubstr("\n")));
  }
}

}  // namespace edgerunner::test
