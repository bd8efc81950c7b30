#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <vector>

namespace edgerunner::test {

// The whole models of a few kilobytes that the fuzz targets begin with, in order of their names.
inline std::vector<std::filesystem::path> seed_models() {
  std::vector<std::filesystem::path> paths;
  const std::filesystem::path folder =
      std::filesystem::path(EDGERUNNER_TESTS_DIR).parent_path() / "fuzz" / "corpus" / "model";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace edgerunner::test
