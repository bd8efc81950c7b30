#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "run_program.h"
#include "support/temporary_folder.h"
#include "tiny_model_file.h"

namespace edgerunner::test {

// A test of the program with a tiny model at hand.
class ProgramTest : public ::testing::Test {
 protected:
  ProgramTest() { write_tiny_model(model_); }

  // The one JSON document that a run that succeeded prints.
  static nlohmann::json run_json(const std::vector<std::string>& arguments,
                                 const ProgramSetup& setup = {}) {
    const ProgramRun run = run_program(arguments, setup);
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_THAT(run.out, ::testing::EndsWith("\n"));
    return nlohmann::json::parse(run.out, nullptr, false);
  }

  std::string write_file(const std::string& name, const std::string& bytes) const {
    const std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  TemporaryFolder folder_;
  std::string model_ = folder_ / "tiny.gguf";
};

}  // namespace edgerunner::test
