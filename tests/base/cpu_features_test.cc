#include "base/cpu_features.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "edgerunner/error.h"

#if defined(__linux__)
#include <sched.h>
#endif

namespace edgerunner {
namespace {

using ::testing::ExitedWithCode;
using ::testing::HasSubstr;

constexpr CpuFeatures kPlain{};
constexpr CpuFeatures kHaswell{.avx2 = true};
constexpr CpuFeatures kSkylake{.avx2 = true, .avx512 = true};
constexpr CpuFeatures kZen4{.avx2 = true, .avx512 = true, .avx512_vnni = true, .avx512_bf16 = true};
constexpr CpuFeatures kSapphireRapids{
    .avx2 = true, .avx512 = true, .avx512_vnni = true, .avx512_bf16 = true, .amx = true};
constexpr CpuFeatures kCortexA72{.neon = true};
constexpr CpuFeatures kNeoverseN1{.neon = true, .dotprod = true};
constexpr CpuFeatures kNeoverseV1{.neon = true, .dotprod = true, .i8mm = true};
constexpr Isa kAllIsas[] = {Isa::scalar, Isa::avx2, Isa::avx512,
                            Isa::amx,    Isa::neon, Isa::neon_i8mm};

TEST(ChooseIsa, TakesTheBestThatTheMachineRuns) {
  EXPECT_EQ(choose_isa(kPlain, std::nullopt), Isa::scalar);
  EXPECT_EQ(choose_isa(kHaswell, std::nullopt), Isa::avx2);
  EXPECT_EQ(choose_isa(kSkylake, std::nullopt), Isa::avx2);  // no VNNI, no BF16
  EXPECT_EQ(choose_isa(kZen4, std::nullopt), Isa::avx512);
  EXPECT_EQ(choose_isa(kSapphireRapids, std::nullopt), Isa::amx);
  EXPECT_EQ(choose_isa(kCortexA72, std::nullopt), Isa::scalar);
  EXPECT_EQ(choose_isa(kNeoverseN1, std::nullopt), Isa::neon);
  EXPECT_EQ(choose_isa(kNeoverseV1, std::nullopt), Isa::neon_i8mm);
}

TEST(ChooseIsa, ObeysAForcedOneThatTheMachineRuns) {
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    EXPECT_EQ(choose_isa(kZen4, name(isa)), isa);
    EXPECT_EQ(choose_isa(kSapphireRapids, name(isa)), isa);
  }
  for (const Isa isa : {Isa::scalar, Isa::neon, Isa::neon_i8mm}) {
    EXPECT_EQ(choose_isa(kNeoverseV1, name(isa)), isa);
  }
}

TEST(ChooseIsa, RefusesAForcedOneThatTheMachineLacks) {
  try {
    choose_isa(kZen4, "amx");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("EDGERUNNER_ISA=amx"));
  }
  try {
    choose_isa(kHaswell, "avx512");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("EDGERUNNER_ISA=avx512"));
  }
}

TEST(ChooseIsa, RefusesAnUnknownOneAndNamesTheKnown) {
  try {
    choose_isa(kZen4, "sse9");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("sse9"));
    EXPECT_THAT(error.what(), HasSubstr("scalar, avx2, avx512, amx, neon, neon_i8mm"));
  }
}

// In a process of its own, since the choice is made once: forked from this one, which makes none.
// (Tests that start the program again can't run in an emulator.)
[[noreturn]] void print_chosen_isa(const std::string& forced) {
  setenv("EDGERUNNER_ISA", forced.c_str(), 1);
  try {
    std::fprintf(stderr, "chose %s.", std::string(name(chosen_isa())).c_str());
    std::_Exit(0);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s", error.what());
    std::_Exit(3);
  }
}

TEST(ChosenIsaDeathTest, IsTheOneThatTheEnvironmentForces) {
  for (const Isa isa : kAllIsas) {
    if (isa == Isa::amx && cpu_features().amx && !may_use_amx()) continue;  // the system's choice
    const std::string forced(name(isa));
    try {
      choose_isa(cpu_features(), forced);
    } catch (const Error&) {
      EXPECT_EXIT(print_chosen_isa(forced), ExitedWithCode(3), "EDGERUNNER_ISA=" + forced);
      continue;
    }
    EXPECT_EXIT(print_chosen_isa(forced), ExitedWithCode(0), "chose " + forced + "\\.");
  }
}

TEST(ChosenIsaDeathTest, FailsOnAnUnknownOne) {
  EXPECT_EXIT(print_chosen_isa("mmx"), ExitedWithCode(3), "mmx is not an instruction set");
}

TEST(ChosenIsaDeathTest, IsTheBestWhereTheVariableIsEmpty) {
  const std::string best(name(choose_isa(cpu_features(), std::nullopt)));
  EXPECT_EXIT(print_chosen_isa(""), ExitedWithCode(0), "chose " + best + "\\.");
}

#if defined(__x86_64__)
TEST(CpuFeatures, AgreeWithTheCompilersRuntime) {
  const CpuFeatures& features = cpu_features();
  EXPECT_EQ(features.avx2, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                               __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2"));
  EXPECT_EQ(features.avx512,
            __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512vl"));
  EXPECT_EQ(features.avx512_vnni, __builtin_cpu_supports("avx512vnni") != 0);
  EXPECT_EQ(features.avx512_bf16, __builtin_cpu_supports("avx512bf16") != 0);
  EXPECT_TRUE(!features.amx || (features.avx512_vnni && features.avx512_bf16));
  EXPECT_TRUE(!may_use_amx() || features.amx);
}
#endif

#if defined(__linux__)
TEST(AvailableCores, FollowTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  const int all = available_cores();
  EXPECT_GE(all, 1);
  EXPECT_LE(all, CPU_COUNT(&before));
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(available_cores(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(available_cores(), all);
}
#endif

}  // namespace
}  // namespace edgerunner
