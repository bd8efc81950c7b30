#include "arch/random_tensors.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "base/half.h"
#include "tensor/element_type.h"

namespace edgerunner {
namespace {

constexpr std::size_t kPatternBlocks = 4096;

// Where a block's f16 scales stand.
std::vector<std::size_t> scale_offsets(ElementType type) {
  switch (type) {
    case ElementType::q4_1:
    case ElementType::q5_1:
    case ElementType::q4_k:
    case ElementType::q5_k:
      return {0, 2};
    case ElementType::q2_k:
      return {80, 82};
    case ElementType::q3_k:
      return {108};
    case ElementType::q6_k:
      return {208};
    default:
      return {0};
  }
}

std::vector<std::byte> random_blocks(ElementType type) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> value(-0.05F, 0.05F);
  const std::size_t block_bytes = traits(type).block_bytes;
  std::vector<std::byte> blocks(kPatternBlocks * block_bytes);
  for (std::size_t i = 0; i < blocks.size(); i += block_bytes) {
    std::byte* const block = blocks.data() + i;
    if (type == ElementType::f32) {
      const float bits = value(random);
      std::memcpy(block, &bits, sizeof bits);
    } else if (type == ElementType::f16 || type == ElementType::bf16) {
      const float number = value(random);
      const std::uint16_t bits =
          type == ElementType::f16 ? f32_to_f16(number) : f32_to_bf16(number);
      std::memcpy(block, &bits, sizeof bits);
    } else {
      std::generate_n(block, block_bytes, [&] { return static_cast<std::byte>(random()); });
      if (type == ElementType::mxfp4) {
        block[0] = std::byte{120};  // 2^(120 - 128): the scale is a power of two
        continue;
      }
      for (const std::size_t offset : scale_offsets(type)) {
        const std::uint16_t bits = f32_to_f16(value(random) / 64);
        std::memcpy(block + offset, &bits, sizeof bits);
      }
    }
  }
  return blocks;
}

// Every matrix but the head.
template <typename W, typename Visit>
void for_each_matrix(W& weights, Visit&& visit) {
  visit(weights.embedding);
  for (auto& layer : weights.layers) {
    for (auto* matrix :
         {&layer.attention.q, &layer.attention.k, &layer.attention.v, &layer.attention.o,
          &layer.feed_forward.gate, &layer.feed_forward.up, &layer.feed_forward.down}) {
      visit(*matrix);
    }
  }
}

bool tied(const Weights& weights) { return weights.head.name == weights.embedding.name; }

std::uint64_t bytes_of(const Matrix& matrix) {
  return std::uint64_t{matrix.rows} * row_bytes(matrix.type, matrix.cols);
}

}  // namespace

std::uint64_t matrix_bytes(const Weights& weights) {
  std::uint64_t bytes = tied(weights) ? 0 : bytes_of(weights.head);
  for_each_matrix(weights, [&](const Matrix& matrix) { bytes += bytes_of(matrix); });
  return bytes;
}

RandomTensors::RandomTensors(Weights& weights) {
  for_each_matrix(weights, [&](Matrix& matrix) { fill(matrix); });
  if (tied(weights)) {
    weights.head.data = weights.embedding.data;
  } else {
    fill(weights.head);
  }
}

void RandomTensors::fill(Matrix& matrix) {
  const std::uint64_t bytes = bytes_of(matrix);
  if (bytes == 0) return;
  std::vector<std::byte>& pattern = patterns_[matrix.type];
  if (pattern.empty()) pattern = random_blocks(matrix.type);
  std::byte* const data =
      storage_.emplace_back(std::make_unique_for_overwrite<std::byte[]>(bytes)).get();
  for (std::uint64_t at = 0; at < bytes; at += pattern.size()) {
    std::memcpy(data + at, pattern.data(), std::min<std::uint64_t>(pattern.size(), bytes - at));
  }
  matrix.data = {data, bytes};
}

}  // namespace edgerunner
