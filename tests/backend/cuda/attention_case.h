#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "backend/cuda/attention.h"
#include "backend/cuda/buffers.h"
#include "backend/cuda/ops.h"
#include "base/half.h"

namespace edgerunner::test {

inline constexpr std::uint16_t kCanary = 0x5A5A;
inline constexpr std::size_t kCanaries = 64;
inline constexpr std::uint32_t kContext = 4608;

struct Heads {
  std::uint32_t heads, kv_heads, dim;
};
struct Scores {
  std::uint32_t window = 0;
  float cap = 0;
};
// Sizes of queries, keys and values; those of scores stay the same.
struct Magnitudes {
  float key = 1;
  float value = 1;
};
struct Rows {
  std::uint32_t start, rows;
  std::uint32_t seed = 1;  // of the sequence's content
};

// Attention kernels over a cache of random sequences, and what the plain one makes of the same.
class CudaAttention : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_available()) GTEST_SKIP() << "no GPU";
    stream_.emplace();
  }

  // Caches of one layer with the sequences' earlier positions in them, pages in any order; what
  // they don't use is no number.
  void prepare(const Heads& heads, KvPrecision kv, const Magnitudes& sizes,
               const std::vector<Rows>& sequences) {
    sizes_ = sizes;
    spec_ = {};
    spec_.dim = 8;
    spec_.layers.push_back({.heads = heads.heads,
                            .kv_heads = heads.kv_heads,
                            .head_dim = heads.dim,
                            .attention_scale = 1.0F / std::sqrt(static_cast<float>(heads.dim))});
    shape_ = cuda::attention_shape(spec_.layers[0]);
    std::uint32_t page_count = 0;
    for (const Rows& s : sequences) page_count += pages_for(s.start + s.rows);
    const ExecutorOptions options{.kv = kv,
                                  .max_rows = kContext,
                                  .max_logit_rows = 1,
                                  .pages = page_count,
                                  .max_context = kContext};
    cache_.emplace(spec_, options);
    cuda::check(cudaMemset(layer().keys, 0xFF, cuda::CachePool::bytes(spec_, options)), "clearing");
    cuda::check(cudaDeviceSynchronize(), "clearing");  // the stream doesn't wait for it
    half_.emplace(spec_, options);
    upload_.emplace(options, cuda::attention_cut(spec_));
    std::vector<PageId> order(page_count);
    std::iota(order.begin(), order.end(), PageId{0});
    std::shuffle(order.begin(), order.end(), std::mt19937(7));
    pages_.clear();
    batch_ = sequences;
    for (const Rows& s : sequences) {
      const auto from = order.end() - pages_for(s.start + s.rows);
      pages_.emplace_back(from, order.end());
      order.erase(from, order.end());
      if (s.start == 0) continue;
      const cuda::DeviceBatch rows = upload({{s.start, 0, pages_.back()}});
      cache(rows, content(s.seed, 0, s.start, false));
    }
    // The batch's own rows.
    slices_.clear();
    std::vector<float> all;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      const Rows& s = sequences[i];
      slices_.push_back({s.rows, s.start, pages_[i]});
      const auto rows = content(s.seed, s.start, s.rows, true);
      all.insert(all.end(), rows.begin(), rows.end());
    }
    rows_ = upload(slices_);
    cache(rows_, all);
  }

  const cuda::DeviceCache& layer() const { return cache_->layer(0); }
  cuda::DeviceBatch upload(const std::vector<SequenceSlice>& slices) {
    std::uint32_t rows = 0;
    for (const SequenceSlice& slice : slices) rows += slice.rows;
    const std::vector<TokenId> tokens(rows);
    const cuda::DeviceBatch batch = upload_->upload({tokens, slices, {}}, *stream_);
    stream_->synchronize();
    return batch;
  }
  void cache(const cuda::DeviceBatch& rows, const std::vector<float>& qkv) {
    qkv_ = cuda::DeviceBuffer(qkv.size() * sizeof(float));
    cuda::check(cudaMemcpy(qkv_.as<void>(), qkv.data(), qkv_.size(), cudaMemcpyHostToDevice),
                "uploading");
    cuda::check(cudaDeviceSynchronize(), "uploading");
    cuda::launch_rotate_and_cache(shape_, {}, rows, qkv_.as<float>(), layer(), *stream_);
    stream_->synchronize();
    cuda::check(cudaGetLastError(), "caching");
  }
  // Queries, keys and values of a sequence's positions: the same wherever the sequence stands, and
  // whether its queries are made or not.
  std::vector<float> content(std::uint32_t seed, std::uint32_t start, std::uint32_t rows,
                             bool queries) const {
    std::vector<float> values(std::size_t{rows} * shape_.row());
    for (std::uint32_t row = 0; row < rows; ++row) {
      std::minstd_rand generator(seed * 100003U + start + row + 1);
      const auto fill = [&](std::uint32_t first, std::uint32_t count, float size) {
        float* const at = values.data() + std::size_t{row} * shape_.row() + first;
        for (std::uint32_t i = 0; i < count; ++i) {
          at[i] = size * (static_cast<float>(generator()) * 0x1p-30F - 1.0F);
        }
      };
      fill(shape_.q_dim(), shape_.kv_dim(), sizes_.key);
      fill(shape_.q_dim() + shape_.kv_dim(), shape_.kv_dim(), sizes_.value);
      if (queries) fill(0, shape_.q_dim(), 6 / sizes_.key);
    }
    return values;
  }

  std::vector<float> attend_f32() {
    const cuda::DeviceBuffer out(std::size_t{rows_.rows} * shape_.q_dim() * sizeof(float));
    cuda::launch_attention_f32(shape_, rows_, qkv_.as<float>(), layer(), out.as<float>(), *stream_);
    std::vector<float> values(out.size() / sizeof(float));
    fetch(out, values);
    return values;
  }
  // `few` or many rows' kernel; f16 as it comes. Checks that nothing else was written.
  std::vector<std::uint16_t> attend(bool few) {
    const std::size_t count = std::size_t{rows_.rows} * shape_.q_dim();
    std::vector<std::uint16_t> values(count + 2 * kCanaries, kCanary);
    std::vector<float> scales(rows_.rows + 2, -7);
    const cuda::DeviceBuffer out(values.size() * sizeof(values[0]));
    const cuda::DeviceBuffer scale(scales.size() * sizeof(float));
    cuda::check(cudaMemcpy(out.as<void>(), values.data(), out.size(), cudaMemcpyHostToDevice), "");
    cuda::check(cudaMemcpy(scale.as<void>(), scales.data(), scale.size(), cudaMemcpyHostToDevice),
                "");
    cuda::check(cudaDeviceSynchronize(), "uploading");
    launch(few, {out.as<__half>() + kCanaries, scale.as<float>() + 1});
    fetch(out, values);
    fetch(scale, scales);
    EXPECT_TRUE(scales.front() == -7 && scales.back() == -7);
    for (std::uint32_t i = 0; i < rows_.rows; ++i) EXPECT_EQ(scales[i + 1], 1.0F) << i;
    for (std::size_t i = 0; i < kCanaries; ++i) {
      EXPECT_TRUE(values[i] == kCanary && values[values.size() - 1 - i] == kCanary) << i;
    }
    return {values.begin() + kCanaries, values.end() - kCanaries};
  }
  void launch(bool few, const cuda::HalfRows& to) {
    if (few) {
      cuda::launch_attention_few(shape_, rows_, upload_->parts(), upload_->part_count(),
                                 qkv_.as<float>(), layer(), half_->partials(), to, *stream_);
    } else {
      cuda::launch_attention_half(shape_, rows_, upload_->tiles(), upload_->tile_count(),
                                  qkv_.as<float>(), layer(), to, *stream_);
    }
  }
  template <typename T>
  void fetch(const cuda::DeviceBuffer& from, std::vector<T>& to) {
    stream_->synchronize();
    cuda::check(cudaGetLastError(), "launching");
    cuda::check(cudaMemcpy(to.data(), from.as<void>(), from.size(), cudaMemcpyDeviceToHost),
                "fetching");
  }

  // Queries and weights are rounded to f16, 2^-12 of themselves on average; scores of several units
  // turn the first into some times as much of the output.
  void expect_near(const std::vector<std::uint16_t>& got, const std::vector<float>& right,
                   const std::string& what) {
    const std::uint32_t dim = shape_.head_dim;
    double worst = 0;
    for (std::size_t head = 0; head < right.size() / dim; ++head) {
      double difference = 0;
      double norm = 0;
      for (std::size_t i = head * dim; i < (head + 1) * dim; ++i) {
        difference += std::pow(static_cast<double>(f16_to_f32(got[i])) - right[i], 2);
        norm += std::pow(static_cast<double>(right[i]), 2);
      }
      const double error = std::sqrt(difference / norm);
      worst = std::isnan(error) ? HUGE_VAL : std::max(worst, error);
    }
    worst_ = std::max(worst_, worst);
    EXPECT_LT(worst, 1e-2) << what;
  }
  // The bits of rows [first, first + rows) of the batch.
  std::vector<std::uint16_t> bits(std::uint32_t first, std::uint32_t rows) {
    const auto all = attend(true);
    const auto begin = all.begin() + std::ptrdiff_t{first} * shape_.q_dim();
    return {begin, begin + std::ptrdiff_t{rows} * shape_.q_dim()};
  }

  std::optional<cuda::Stream> stream_;
  DecoderSpec spec_;
  cuda::AttentionShape shape_;
  Magnitudes sizes_;
  std::optional<cuda::CachePool> cache_;
  std::optional<cuda::HalfScratch> half_;
  std::optional<cuda::BatchUpload> upload_;
  std::vector<std::vector<PageId>> pages_;
  std::vector<Rows> batch_;
  std::vector<SequenceSlice> slices_;
  cuda::DeviceBatch rows_;
  cuda::DeviceBuffer qkv_;
  double worst_ = 0;
};

}  // namespace edgerunner::test
