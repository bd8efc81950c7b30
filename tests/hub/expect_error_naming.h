#pragma once

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "edgerunner/error.h"

namespace edgerunner::test {

// Expects `action` to throw Error(code) with one line of text that contains each of `parts`.
template <typename Action>
void expect_error_naming(ErrorCode code, const std::vector<std::string>& parts, Action action) {
  try {
    action();
    ADD_FAILURE() << "no error, where one about \"" << parts.front() << "\" was expected";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const std::string& part : parts) EXPECT_THAT(error.what(), ::testing::HasSubstr(part));
    EXPECT_THAT(error.what(), ::testing::Not(::testing::HasSubstr("\n")));
  }
}

}  // namespace edgerunner::test
