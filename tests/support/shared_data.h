#pragma once

#include <gtest/gtest.h>

#include <filesystem>

namespace edgerunner::test {

// The folder of reference data beside the repository; tests that need it skip where it is absent.
inline std::filesystem::path shared_dir() {
  return std::filesystem::path(EDGERUNNER_SHARED_DIR).lexically_normal();
}
inline bool has_shared_data() { return std::filesystem::exists(shared_dir() / "README.md"); }

}  // namespace edgerunner::test

#define EDGERUNNER_REQUIRE_SHARED_DATA()                                                       \
  if (!edgerunner::test::has_shared_data()) {                                                  \
    GTEST_SKIP() << "reference data not found at " << edgerunner::test::shared_dir().string(); \
  }
