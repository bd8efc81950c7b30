#include "base/environment.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <set>

#include "edgerunner/error.h"

namespace edgerunner {
namespace {

TEST(Environment, TableNamesEachVariableOnceWithItsPurpose) {
  std::set<std::string_view> names;
  for (const auto& variable : environment_variables()) {
    EXPECT_TRUE(names.insert(variable.name).second) << variable.name;
    EXPECT_EQ(variable.name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_"),
              std::string_view::npos)
        << variable.name;
    EXPECT_FALSE(variable.purpose.empty()) << variable.name;
  }
}

TEST(Environment, GivesTheValueOfAVariableThatIsSetAndNotEmpty) {
  const auto before = environment("EDGERUNNER_ISA");
  setenv("EDGERUNNER_ISA", "something", 1);
  EXPECT_EQ(environment("EDGERUNNER_ISA"), "something");
  setenv("EDGERUNNER_ISA", "", 1);
  EXPECT_EQ(environment("EDGERUNNER_ISA"), std::nullopt);
  unsetenv("EDGERUNNER_ISA");
  EXPECT_EQ(environment("EDGERUNNER_ISA"), std::nullopt);
  if (before) setenv("EDGERUNNER_ISA", before->c_str(), 1);
}

TEST(Environment, RefusesAVariableThatIsNotInTheTable) {
  EXPECT_THROW(environment("PATH"), Error);
  EXPECT_THROW(environment("EDGERUNNER_NO_SUCH_THING"), Error);
}

}  // namespace
}  // namespace edgerunner
