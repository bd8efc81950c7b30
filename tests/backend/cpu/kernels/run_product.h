#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <random>
#include <vector>

#include "backend/cpu/kernels/q8_block.h"
#include "backend/cpu/matmul.h"

namespace edgerunner::test {

// Bytes at an address that is a multiple of 64, as kernels want them.
class AlignedBytes {
 public:
  explicit AlignedBytes(std::size_t size)
      : data_(static_cast<std::byte*>(::operator new (size, std::align_val_t{64}))) {}
  std::byte* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  std::unique_ptr<std::byte, Free> data_;
};

// Rows of activations, prepared in a format by a set of kernels.
class Prepared {
 public:
  Prepared(const cpu::Kernels& kernels, cpu::ActivationFormat format, const std::vector<float>& x,
           std::uint32_t cols, cpu::Refinement refinement = cpu::Refinement::outliers)
      : format_(format),
        cols_(cols),
        rows_(static_cast<std::uint32_t>(x.size() / cols)),
        stride_(cpu::prepared_row_bytes(format, cols)),
        bytes_(stride_ * rows_) {
    for (std::uint32_t r = 0; r < rows_; ++r) {
      kernels.prepare(format, refinement, x.data() + std::size_t{r} * cols, cols,
                      bytes_.data() + r * stride_);
    }
  }
  cpu::Activations rows(std::uint32_t begin, std::uint32_t count) const {
    return {format_, count, cols_, bytes_.data() + begin * stride_, stride_};
  }
  std::size_t size() const { return stride_ * rows_; }

 private:
  cpu::ActivationFormat format_;
  std::uint32_t cols_;
  std::uint32_t rows_;
  std::size_t stride_;
  AlignedBytes bytes_;
};

// Of each block of a row in ActivationFormat::q8 its second term, or null.
inline std::vector<const cpu::Q8Block*> terms_of(const std::byte* row, std::uint32_t cols) {
  std::vector<const cpu::Q8Block*> terms(cpu::q8_blocks(cols));
  cpu::for_each_term(row, cpu::q8_blocks(cols),
                     [&](std::uint32_t b, const cpu::Q8Block& term) { terms[b] = &term; });
  return terms;
}

enum class Kind { normal, spikes, rare_spikes, zeros };

// Activations [rows, cols]: N(0, 1); N(0, 3e3) with spikes of 6e4 and whole blocks of zeros;
// N(0, 1e-3) with rare spikes of 6e4; zeros.
inline std::vector<float> random_activations(Kind kind, std::uint32_t rows, std::uint32_t cols,
                                             std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(std::size_t{rows} * cols, 0.0F);
  if (kind == Kind::zeros) return x;
  const float deviation = kind == Kind::normal ? 1.0F : kind == Kind::spikes ? 3e3F : 1e-3F;
  const std::uint32_t spike_every = kind == Kind::spikes ? 100 : 500;
  for (float& value : x) {
    value = normal(random) * deviation;
    if (kind != Kind::normal && random() % spike_every == 0) {
      value = random() % 2 == 0 ? 6e4F : -6e4F;
    }
  }
  if (kind == Kind::spikes) {
    for (std::size_t i = 0; i + 32 <= x.size(); i += 5 * 32) std::fill_n(x.begin() + i, 32, 0.0F);
  }
  return x;
}

// Runs a product over all rows of its weights.
inline void run(const cpu::Kernels& kernels, const cpu::Product& product) {
  const AlignedBytes scratch(cpu::multiply_scratch_bytes(product.weights->cols));
  kernels.multiply(product, 0, product.weights->rows, scratch.data());
}

}  // namespace edgerunner::test
