#include "cpu/kernels/tile_order.h"

#include <cmath>
#include <cstring>

#include "base/half.h"
#include "cpu/kernels/run_product.h"

namespace edgerunner::test {
namespace {

float without_subnormals(float x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0F, x) : x;
}

float multiply_add(float a, float b, float sum) {
  return without_subnormals(std::fma(without_subnormals(a), without_subnormals(b), sum));
}

// Element i of a row of 16-bit numbers.
std::uint16_t element(const std::byte* row, std::uint32_t i) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, row + sizeof bits * i, sizeof bits);
  return bits;
}

// The products of a weight row of `cols` columns with a row of activations.
float sum_in_tile_order(ElementType type, const std::byte* w, const std::byte* x,
                        std::uint32_t cols) {
  const auto add_product = [&](std::uint32_t i, float sum) {
    if (i >= cols) return multiply_add(0.0F, 0.0F, sum);
    const std::uint16_t bits = element(w, i);
    const std::uint16_t weight = type == ElementType::f16 ? f32_to_bf16(f16_to_f32(bits)) : bits;
    return multiply_add(bf16_to_f32(weight), bf16_to_f32(element(x, i)), sum);
  };
  float sum = 0;
  for (std::uint32_t step = 0; step < cols; step += 32) {
    float even = 0;
    float odd = 0;
    for (std::uint32_t i = step; i < step + 32; i += 2) {
      even = add_product(i, even);
      odd = add_product(i + 1, odd);
    }
    sum = without_subnormals(sum + without_subnormals(even + odd));
  }
  return sum;
}

}  // namespace

void run_in_tile_order(const cpu::Product& product) {
  const Matrix& weights = *product.weights;
  for (std::uint32_t t = 0; t < product.x.rows; ++t) {
    float* out = product.out + t * product.out_stride;
    for (std::uint32_t r = 0; r < weights.rows; ++r) {
      float sum = sum_in_tile_order(weights.type,
                                    weights.data.data() + r * row_bytes(weights.type, weights.cols),
                                    product.x.data + t * product.x.row_stride, weights.cols);
      if (product.bias != nullptr) sum += product.bias[r];
      if (product.epilogue == cpu::Epilogue::store) {
        out[r] = sum;
      } else if (product.epilogue == cpu::Epilogue::add) {
        out[r] += sum;
      } else {
        cpu::kernels(Isa::scalar).apply_gate(product.epilogue, &sum, 1, out + r);
      }
    }
  }
}

void run_reference(Isa isa, const cpu::Product& product) {
  if (isa == Isa::amx && product.x.format == cpu::ActivationFormat::bf16) {
    return run_in_tile_order(product);
  }
  run(cpu::kernels(Isa::scalar), product);
}

}  // namespace edgerunner::test
