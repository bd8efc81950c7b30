// Attention on pages of the cache against plain softmax in double.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>
#include <vector>

#include "backend/cpu/vector_kernels.h"
#include "base/half.h"
#include "support/machine_isas.h"

namespace edgerunner::cpu {
namespace {

using test::machine_isas;

struct Shape {
  std::uint32_t head_dim;
  std::uint32_t heads;  // that share the KV head
  std::uint32_t window;
  std::uint32_t start;   // position of the first query
  std::uint32_t tokens;  // queries
  KvPrecision kv;
};

std::vector<float> gaussian(std::size_t size, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> values(size);
  for (float& value : values) value = normal(random);
  return values;
}

// Heads, [tokens, head_dim], as the cache gives them back.
std::vector<double> in_cache(const std::vector<float>& heads, const Shape& shape) {
  std::vector<double> cached(heads.begin(), heads.end());
  if (shape.kv == KvPrecision::f16) {
    for (double& value : cached) value = f16_to_f32(f32_to_f16(static_cast<float>(value)));
  }
  if (shape.kv != KvPrecision::q8) return cached;
  for (std::size_t head = 0; head < cached.size(); head += shape.head_dim) {
    float largest = 0;
    for (std::uint32_t i = 0; i < shape.head_dim; ++i) {
      largest = std::max(largest, std::abs(heads[head + i]));
    }
    const float inverse = 127.0F / largest;
    for (std::uint32_t i = 0; i < shape.head_dim; ++i) {
      cached[head + i] = std::nearbyint(heads[head + i] * inverse) * double{largest / 127.0F};
    }
  }
  return cached;
}

// Softmax attention of one query over tokens begin to end - 1, in double.
std::vector<double> plain_attention(const float* query, const std::vector<double>& keys,
                                    const std::vector<double>& values, std::uint32_t head_dim,
                                    std::uint32_t begin, std::uint32_t end) {
  std::vector<double> result(head_dim);
  double total = 0;
  for (std::uint32_t p = begin; p < end; ++p) {
    double score = 0;
    for (std::uint32_t i = 0; i < head_dim; ++i) score += query[i] * keys[p * head_dim + i];
    const double weight = std::exp2(score);
    total += weight;
    for (std::uint32_t i = 0; i < head_dim; ++i) result[i] += weight * values[p * head_dim + i];
  }
  for (double& value : result) value /= total;
  return result;
}

// One KV head's cache, its pages in reverse order, each followed by a gap.
class Cache {
 public:
  Cache(const VectorKernels& kernels, const Shape& shape, const std::vector<float>& keys,
        const std::vector<float>& values)
      : layout_{shape.head_dim, shape.kv}, stride_(layout_.bytes() + 192) {
    const std::uint32_t length = shape.start + shape.tokens;
    const std::uint32_t count = pages_for(length);
    memory_.resize(stride_ * count);
    std::vector<std::byte> scratch(attention_scratch_bytes(shape.head_dim, 1));
    for (std::uint32_t page = 0; page < count; ++page) {
      pages_.push_back(count - 1 - page);
      const std::uint32_t first = page * kPageTokens;
      const std::uint32_t tokens = std::min(length - first, kPageTokens);
      std::byte* block = memory_.data() + pages_[page] * stride_;
      const float* from = keys.data() + std::size_t{first} * shape.head_dim;
      // In two pieces, as decoding would.
      const std::uint32_t half = tokens / 2;
      kernels.store_keys(from, shape.head_dim, half, 0, layout_, block, scratch.data());
      kernels.store_keys(from + half * shape.head_dim, shape.head_dim, tokens - half, half, layout_,
                         block, scratch.data());
      kernels.store_values(values.data() + std::size_t{first} * shape.head_dim, shape.head_dim,
                           tokens, 0, layout_, block);
    }
  }

  AttentionTile tile(const Shape& shape, const std::vector<float>& queries, std::uint32_t first,
                     std::uint32_t tokens) const {
    AttentionTile tile;
    tile.queries = queries.data() + std::size_t{first} * shape.heads * shape.head_dim;
    tile.position = shape.start + first;
    tile.tokens = tokens;
    tile.heads = shape.heads;
    tile.window = shape.window;
    tile.cache = memory_.data();
    tile.page_stride = stride_;
    tile.pages = pages_.data();
    tile.layout = layout_;
    return tile;
  }

 private:
  KvHeadLayout layout_;
  std::size_t stride_;
  std::vector<std::byte> memory_;
  std::vector<std::uint32_t> pages_;
};

// [tokens * heads, head_dim]
std::vector<float> attend(const VectorKernels& kernels, const AttentionTile& tile) {
  const std::uint32_t head_dim = tile.layout.head_dim;
  const std::size_t record = attention_record_floats(head_dim);
  std::vector<float> total(tile.rows() * record);
  std::vector<float> next(tile.rows() * record);
  std::vector<std::byte> scratch(attention_scratch_bytes(head_dim, tile.rows()));
  kernels.attend(tile, tile.first_split(), total.data(), scratch.data());
  for (std::uint32_t split = tile.first_split() + 1; split < tile.end_split(); ++split) {
    kernels.attend(tile, split, next.data(), scratch.data());
    kernels.merge(total.data(), next.data(), tile.rows(), head_dim);
  }
  std::vector<float> out(std::size_t{tile.rows()} * head_dim);
  for (std::uint32_t row = 0; row < tile.rows(); ++row) {
    kernels.finish(total.data() + row * record, head_dim, out.data() + row * head_dim);
  }
  return out;
}

struct Inputs {
  std::vector<float> keys;     // [length, head_dim]
  std::vector<float> values;   // [length, head_dim]
  std::vector<float> queries;  // [tokens, heads, head_dim]

  explicit Inputs(const Shape& shape) {
    std::mt19937 random(shape.head_dim * 1000 + shape.start + shape.tokens);
    const std::uint32_t length = shape.start + shape.tokens;
    keys = gaussian(std::size_t{length} * shape.head_dim, random);
    values = gaussian(std::size_t{length} * shape.head_dim, random);
    // Scores in units of log2 of deviation 3: some weights are large, most are not.
    queries = gaussian(std::size_t{shape.tokens} * shape.heads * shape.head_dim, random);
    for (float& q : queries) q *= 3 / std::sqrt(static_cast<float>(shape.head_dim));
  }
};

// Runs a shape whole and token by token; returns the largest error of either and checks that they
// are the same bits.
double error_of(const VectorKernels& kernels, const Shape& shape) {
  const Inputs in(shape);
  const std::vector<float>& queries = in.queries;
  const Cache cache(kernels, shape, in.keys, in.values);
  const auto whole = attend(kernels, cache.tile(shape, queries, 0, shape.tokens));
  const auto keys = in_cache(in.keys, shape);
  const auto values = in_cache(in.values, shape);

  double largest = 0;
  for (std::uint32_t t = 0; t < shape.tokens; ++t) {
    const auto single = attend(kernels, cache.tile(shape, queries, t, 1));
    const std::size_t at = std::size_t{t} * shape.heads * shape.head_dim;
    EXPECT_TRUE(std::equal(single.begin(), single.end(), whole.begin() + at)) << "token " << t;
    const std::uint32_t end = shape.start + t + 1;
    const std::uint32_t begin = shape.window == 0 || end <= shape.window ? 0 : end - shape.window;
    for (std::uint32_t h = 0; h < shape.heads; ++h) {
      const std::size_t row = at + h * shape.head_dim;
      const auto wanted =
          plain_attention(queries.data() + row, keys, values, shape.head_dim, begin, end);
      for (std::uint32_t i = 0; i < shape.head_dim; ++i) {
        largest = std::max(largest, std::abs(whole[row + i] - wanted[i]));
      }
    }
  }
  return largest;
}

void expect_small_errors(const std::vector<Shape>& shapes) {
  for (const Isa isa : machine_isas()) {
    double largest = 0;
    for (const Shape& shape : shapes) {
      SCOPED_TRACE(fmt::format("{}: head_dim {}, {} heads, window {}, {} + {} tokens", name(isa),
                               shape.head_dim, shape.heads, shape.window, shape.start,
                               shape.tokens));
      const double error = error_of(vector_kernels(isa), shape);
      // Scores of magnitude 12 err by some 1e-6, and their weights by as much.
      EXPECT_LE(error, 1e-5);
      largest = std::max(largest, error);
    }
    fmt::print("{:7} largest error {:.1e} of values of deviation 1\n", name(isa), largest);
  }
}

TEST(Attention, FollowsSoftmaxForEveryHeadDim) {
  std::vector<Shape> shapes;
  for (const std::uint32_t head_dim : {8U, 16U, 32U, 64U, 80U, 96U, 128U, 256U}) {
    for (const KvPrecision kv : {KvPrecision::f16, KvPrecision::f32, KvPrecision::q8}) {
      shapes.push_back({head_dim, 3, 0, 0, 20, kv});
      shapes.push_back({head_dim, 1, 0, 250, 14, kv});
    }
  }
  expect_small_errors(shapes);
}

TEST(Attention, FollowsSoftmaxForEveryLengthTo200) {
  std::vector<Shape> shapes;
  for (std::uint32_t length = 1; length <= 200; ++length) {
    shapes.push_back({16, 2, 0, length - 1, 1, KvPrecision::f16});
    shapes.push_back({16, 3, 0, 0, length < 20 ? length : 20, KvPrecision::f32});
    shapes.push_back({16, 1, 0, length - 1, 1, KvPrecision::q8});
  }
  expect_small_errors(shapes);
}

TEST(Attention, FollowsSoftmaxForEveryGroupOfHeads) {
  std::vector<Shape> shapes;
  for (const std::uint32_t heads : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U, 12U, 16U}) {
    shapes.push_back({32, heads, 0, 300, 1, KvPrecision::f16});
    shapes.push_back({32, heads, 0, 500, 30, KvPrecision::f16});
    shapes.push_back({32, heads, 0, 300, 1, KvPrecision::q8});
  }
  expect_small_errors(shapes);
}

TEST(Attention, SeesTheWindowAndNoMore) {
  std::vector<Shape> shapes;
  for (const std::uint32_t window : {1U, 2U, 16U, 63U, 64U, 65U, 128U, 300U}) {
    shapes.push_back({16, 2, window, 0, 30, KvPrecision::f16});
    shapes.push_back({16, 2, window, 50, 30, KvPrecision::f32});
    shapes.push_back({16, 2, window, 620, 40, KvPrecision::f16});
    shapes.push_back({16, 2, window, 620, 40, KvPrecision::q8});
  }
  expect_small_errors(shapes);
}

// What 8 bits cost. A key's element errs by at most half its scale s = max|k| / 127, so that a
// score errs by at most d = max over keys of s / 2 * sum|q| (in units of log2). Then every weight's
// numerator changes by a factor in [2^-d, 2^d], and the weights' absolute changes add up to at most
// 2 tanh(d ln 2 / 2) <= d ln 2. With the values' own errors of half their scales,
//   |error| <= max s_v / 2 + d ln 2 max|v|.
TEST(Attention, AnEightBitCacheErrsWithinItsBound) {
  for (const std::uint32_t head_dim : {16U, 64U, 80U, 128U}) {
    const Shape shape{head_dim, 3, 0, 300, 20, KvPrecision::q8};
    const Inputs in(shape);
    const std::vector<double> keys(in.keys.begin(), in.keys.end());
    const std::vector<double> values(in.values.begin(), in.values.end());
    double largest_key = 0;
    double largest_value = 0;
    for (const double key : keys) largest_key = std::max(largest_key, std::abs(key));
    for (const double value : values) largest_value = std::max(largest_value, std::abs(value));
    constexpr double kHalfStep = (0.5 + 0x1p-16) / 127;
    for (const Isa isa : machine_isas()) {
      const Cache cache(vector_kernels(isa), shape, in.keys, in.values);
      const auto got = attend(vector_kernels(isa), cache.tile(shape, in.queries, 0, shape.tokens));
      double worst = 0;  // of the errors' fractions of their bounds
      for (std::size_t row = 0; row < std::size_t{shape.tokens} * shape.heads; ++row) {
        const float* query = in.queries.data() + row * head_dim;
        const auto end = static_cast<std::uint32_t>(shape.start + row / shape.heads + 1);
        const auto wanted = plain_attention(query, keys, values, head_dim, 0, end);
        double magnitudes = 0;
        for (std::uint32_t i = 0; i < head_dim; ++i) magnitudes += std::abs(query[i]);
        const double score_error = largest_key * kHalfStep * magnitudes;
        const double bound =
            largest_value * (kHalfStep + score_error * std::numbers::ln2_v<double>)+1e-5;
        for (std::uint32_t i = 0; i < head_dim; ++i) {
          worst = std::max(worst, std::abs(got[row * head_dim + i] - wanted[i]) / bound);
        }
      }
      EXPECT_LE(worst, 1) << "head_dim " << head_dim << " on " << name(isa);
      fmt::print("head_dim {:3} {:7} at most {:.3f} of the bound\n", head_dim, name(isa), worst);
    }
  }
}

// A token that a row may not see changes nothing, even where it is not a number.
TEST(Attention, AnEightBitCacheKeepsWhatIsUnseenOut) {
  const Shape shape{16, 2, 0, 30, 2, KvPrecision::q8};
  Inputs in(shape);
  for (const Isa isa : machine_isas()) {
    const Cache good(vector_kernels(isa), shape, in.keys, in.values);
    const auto wanted = attend(vector_kernels(isa), good.tile(shape, in.queries, 0, 2));
    Inputs spoilt = in;
    spoilt.keys[31 * 16] = NAN;
    spoilt.values[31 * 16 + 3] = INFINITY;
    const Cache bad(vector_kernels(isa), shape, spoilt.keys, spoilt.values);
    const auto got = attend(vector_kernels(isa), bad.tile(shape, in.queries, 0, 2));
    EXPECT_TRUE(std::equal(got.begin(), got.begin() + 32, wanted.begin())) << name(isa);
    for (std::size_t i = 32; i < 64; ++i) EXPECT_TRUE(std::isnan(got[i])) << name(isa);
  }
}

TEST(Attention, GivesTheSameBitsOnEveryInstructionSet) {
  for (const KvPrecision kv : {KvPrecision::f16, KvPrecision::f32, KvPrecision::q8}) {
    for (const std::uint32_t head_dim : {8U, 64U, 80U}) {
      const Shape shape{head_dim, 3, 0, 290, 20, kv};
      const Inputs in(shape);
      std::vector<float> first;
      for (const Isa isa : machine_isas()) {
        const Cache cache(vector_kernels(isa), shape, in.keys, in.values);
        const auto got =
            attend(vector_kernels(isa), cache.tile(shape, in.queries, 0, shape.tokens));
        if (first.empty()) first = got;
        EXPECT_TRUE(got == first) << name(isa) << ", head_dim " << head_dim;
      }
    }
  }
}

}  // namespace
}  // namespace edgerunner::cpu
