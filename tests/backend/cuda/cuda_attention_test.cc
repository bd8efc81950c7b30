#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cuda/attention_case.h"
#include "cuda/late_copy.h"

// The tensor cores' attention, of few rows and of many, against the plain one in f32 over the same
// cache.

namespace edgerunner::test {
namespace {

// 64 rows in all: the borders of pages, parts and of parts' sizes.
const std::vector<Rows>& mixed_rows() {
  static const std::vector<Rows> rows = {
      {0, 1, 1},   {63, 1, 2},  {64, 2, 3},   {65, 3, 4},   {127, 2, 5},  {254, 4, 6},
      {511, 4, 7}, {512, 1, 8}, {513, 5, 9},  {2000, 8, 1}, {1, 7, 2},    {255, 1, 3},
      {256, 1, 4}, {380, 8, 5}, {4092, 8, 6}, {700, 1, 7},  {1023, 7, 8},
  };
  return rows;
}

TEST_F(CudaAttention, OfFewAndManyRowsIsThatInF32) {
  for (const std::uint32_t dim : {64U, 80U, 96U, 128U, 256U}) {
    for (const KvPrecision kv : {KvPrecision::f16, KvPrecision::q8}) {
      for (const auto& [heads, kv_heads] :
           {std::pair{2U, 2U}, std::pair{6U, 2U}, std::pair{8U, 2U}, std::pair{7U, 1U},
            std::pair{16U, 2U}, std::pair{20U, 1U}, std::pair{5U, 5U}}) {
        prepare({heads, kv_heads, dim}, kv, {}, mixed_rows());
        ASSERT_EQ(rows_.rows, 64U);
        for (const Scores& scores : {Scores{}, Scores{100, 0}, Scores{0, 2}, Scores{512, 20}}) {
          shape_.window = scores.window;
          shape_.cap = scores.cap;
          const std::string what =
              fmt::format("{} heads of {}, {} kv heads, {}, window {}, cap {}", heads, dim,
                          kv_heads, name(kv), scores.window, scores.cap);
          const auto right = attend_f32();
          const auto few = attend(true);
          expect_near(few, right, "few rows: " + what);
          EXPECT_EQ(attend(true), few) << what;
          expect_near(attend(false), right, "many rows: " + what);
        }
      }
    }
  }
  fmt::print("worst error {:.2e}\n", worst_);
}

TEST_F(CudaAttention, KeepsItsErrorWhateverTheMagnitudes) {
  for (const KvPrecision kv : {KvPrecision::f16, KvPrecision::q8}) {
    for (const Magnitudes& sizes :
         {Magnitudes{1e-2F, 6e4F}, Magnitudes{1e3F, 1e-2F}, Magnitudes{30, 1e3F}}) {
      for (const std::uint32_t dim : {64U, 128U, 256U}) {
        prepare({4, 1, dim}, kv, sizes, mixed_rows());
        const std::string what = fmt::format("{}, keys {}, values {}, heads of {}", name(kv),
                                             sizes.key, sizes.value, dim);
        const auto right = attend_f32();
        expect_near(attend(true), right, "few rows: " + what);
        expect_near(attend(false), right, "many rows: " + what);
      }
    }
  }
  fmt::print("worst error {:.2e}\n", worst_);
}

TEST_F(CudaAttention, OfAChunkIsThatInF32) {
  for (const std::uint32_t dim : {64U, 80U, 96U, 128U, 256U}) {
    for (const KvPrecision kv : {KvPrecision::f16, KvPrecision::q8}) {
      prepare({6, 2, dim}, kv, {}, {{70, 150, 1}, {0, 65, 2}, {600, 3, 3}});
      for (const Scores& scores : {Scores{}, Scores{100, 0}, Scores{0, 2}}) {
        shape_.window = scores.window;
        shape_.cap = scores.cap;
        expect_near(attend(false), attend_f32(),
                    fmt::format("heads of {}, {}, window {}, cap {}", dim, name(kv), scores.window,
                                scores.cap));
      }
    }
  }
}

TEST_F(CudaAttention, OfFewRowsGivesASequenceTheSameBitsAloneAndAmongOthers) {
  for (const Heads& heads : {Heads{16, 8, 128}, Heads{9, 3, 64}, Heads{4, 1, 256}}) {
    for (const KvPrecision kv : {KvPrecision::f16, KvPrecision::q8}) {
      for (const std::uint32_t position : {0U, 256U, 383U, 384U, 767U, 768U, 4096U}) {
        const Rows own{position, 1, 99};
        prepare(heads, kv, {}, {own});
        const auto alone = bits(0, 1);
        std::vector<Rows> among;
        for (std::uint32_t i = 0; i < 32; ++i) among.push_back({3 + 13 * i, 1 + i % 2, i});
        among.insert(among.begin() + 20, own);
        prepare(heads, kv, {}, among);
        EXPECT_EQ(bits(30, 1), alone) << heads.dim << " " << name(kv) << " at " << position;
      }
    }
  }
}

TEST_F(CudaAttention, OfFewRowsGivesARowTheSameBitsHoweverManyAreFedTogether) {
  for (const Heads& heads : {Heads{15, 5, 64}, Heads{6, 2, 80}, Heads{4, 1, 256}}) {
    for (const KvPrecision kv : {KvPrecision::f16, KvPrecision::q8}) {
      for (const std::uint32_t start : {0U, 60U, 380U, 764U, 4091U}) {
        for (const std::uint32_t window : {0U, 100U}) {
          constexpr std::uint32_t kTogether = 8;
          prepare(heads, kv, {}, {{start, kTogether, 3}});
          shape_.window = window;
          const auto together = bits(0, kTogether);
          for (std::uint32_t i = 0; i < kTogether; ++i) {
            prepare(heads, kv, {}, {{start + i, 1, 3}});
            shape_.window = window;
            const auto from = together.begin() + std::ptrdiff_t{i} * shape_.q_dim();
            EXPECT_EQ(bits(0, 1), std::vector<std::uint16_t>(from, from + shape_.q_dim()))
                << heads.dim << " " << name(kv) << " row " << i << " from " << start;
          }
        }
      }
    }
  }
}

// Queries, and the new row's key, written late by a kernel that has let its successor begin.
TEST_F(CudaAttention, WaitsForTheKernelBefore) {
  for (const bool few : {true, false}) {
    for (const std::uint32_t position : {0U, 63U, 64U, 700U}) {
      prepare({4, 1, 128}, KvPrecision::f16, {}, {{position, 1, 5}});
      const auto expected = attend(few);
      const std::size_t row = pages_[0].back() * std::size_t{kPageTokens} + position % kPageTokens;
      void* const key = static_cast<__half*>(layer().keys) + row * shape_.head_dim;
      for (const auto& [late, bytes] : {std::pair{qkv_.as<void>(), qkv_.size()},
                                        std::pair{key, std::size_t{shape_.head_dim} * 2}}) {
        const cuda::DeviceBuffer right(bytes);
        const cuda::DeviceBuffer out(expected.size() * 2);
        const cuda::DeviceBuffer scale(sizeof(float));
        cuda::check(cudaMemcpy(right.as<void>(), late, bytes, cudaMemcpyDeviceToDevice), "copying");
        cuda::check(cudaMemset(late, 0x2A, bytes), "clearing");
        cuda::check(cudaDeviceSynchronize(), "clearing");
        launch_late_copy(late, right.as<void>(), bytes, *stream_);
        launch(few, {out.as<__half>(), scale.as<float>()});
        std::vector<std::uint16_t> got(expected.size());
        fetch(out, got);
        EXPECT_EQ(got, expected) << (few ? "few" : "many") << " at " << position;
      }
    }
  }
}

}  // namespace
}  // namespace edgerunner::test
