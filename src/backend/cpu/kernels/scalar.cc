// The portable kernels. They state the numeric contract of matmul.h as plainly as possible; the
// vector kernels are tested against them bit for bit.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "backend/cpu/kernels/codes.h"
#include "backend/cpu/kernels/instruction_sets.h"
#include "backend/cpu/kernels/q8_block.h"
#include "backend/cpu/kernels/refine.h"
#include "backend/cpu/kernels/silu.h"
#include "base/half.h"
#include "tensor/element_type.h"

namespace edgerunner::cpu {
namespace {

struct ScalarOps {
  using F = float;
  static F set(float x) { return x; }
  static F negate(F x) { return -x; }
  static F max(F a, F b) { return a > b ? a : b; }
  static F min(F a, F b) { return a < b ? a : b; }
  static F add(F a, F b) { return a + b; }
  static F sub(F a, F b) { return a - b; }
  static F mul(F a, F b) { return a * b; }
  static F div(F a, F b) { return a / b; }
  static F fma(F a, F b, F c) { return std::fma(a, b, c); }
  // 2^n for a float n + 1.5 * 2^23
  static F power_of_two(F shifted) {
    return std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) << 23) + (127U << 23));
  }
};

void prepare_q8_block(const float* x, Q8Block& out) {
  std::uint32_t magnitude = 0;  // as bits, so that NaN > infinity > every number
  for (int i = 0; i < kQ8Length; ++i) {
    magnitude = std::max(magnitude, std::bit_cast<std::uint32_t>(x[i]) & 0x7FFFFFFFU);
  }
  const float largest = std::bit_cast<float>(magnitude);
  const bool finite = magnitude < 0x7F800000U;
  std::memset(&out, 0, sizeof out);
  if (finite && largest < kSmallestMagnitude) return;
  out.scale = finite ? largest / 127.0F : std::bit_cast<float>(0x7FC00000U);
  int sums[2] = {0, 0};
  if (finite) {
    const float inverse = 127.0F / largest;
    for (int i = 0; i < kQ8Length; ++i) {
      const float shifted = x[i] * inverse + 0x1.8p23F;
      out.q[i] = static_cast<std::int8_t>(std::bit_cast<std::uint32_t>(shifted) & 0xFFU);
      sums[i / 16] += out.q[i];
    }
  }
  out.scaled_sum = out.scale * static_cast<float>(sums[0] + sums[1]);
  out.start = -kCodeOffset * (sums[0] + sums[1]);
  out.half_sum[0] = static_cast<std::int16_t>(sums[0]);
  out.half_sum[1] = static_cast<std::int16_t>(sums[1]);
}

// Subnormal numbers become zero, as the machine's own conversion has it.
std::uint16_t flush_to_bf16(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7F800000U) == 0) return static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  return f32_to_bf16(x);
}

float dot_f32(const float* w, const float* x, std::uint32_t cols) {
  float sum = 0;
  for (std::uint32_t k = 0; k < cols; ++k) sum = std::fma(w[k], x[k], sum);
  return sum;
}

// Eight sums side by side, pairs to each in sequence, of each pair the second first: the order of
// VDPBF16PS. A product of two bfloat16 is exact in f32, so that the fused operation is the same as
// two. Both rows are padded with zeros to 16 columns.
float dot_bf16(const std::uint16_t* w, const std::uint16_t* x, std::uint32_t cols) {
  float sums[8] = {};
  for (std::uint32_t k = 0; k < cols; k += 16) {
    for (std::uint32_t lane = 0; lane < 8; ++lane) {
      const std::uint32_t i = k + 2 * lane;
      sums[lane] = std::fma(bf16_to_f32(w[i + 1]), bf16_to_f32(x[i + 1]), sums[lane]);
      sums[lane] = std::fma(bf16_to_f32(w[i]), bf16_to_f32(x[i]), sums[lane]);
    }
  }
  for (std::uint32_t half = 4; half != 0; half /= 2) {
    for (std::uint32_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  }
  return sums[0];
}

// Goes on with a sum by the products of one block.
float add_block(CodeForm form, const Codes& w, const Q8Block& x, float sum) {
  const bool is_signed = form == CodeForm::signed_codes || form == CodeForm::half_scales;
  int dots[2] = {0, 0};
  for (int i = 0; i < kQ8Length; ++i) {
    dots[i / 16] += (w.code[i] - (is_signed ? kCodeOffset : 0)) * x.q[i];
  }
  if (form == CodeForm::half_scales) {
    const float t = w.scale[0] * static_cast<float>(dots[0]);
    return std::fma(x.scale, std::fma(w.scale[1], static_cast<float>(dots[1]), t), sum);
  }
  float t = w.scale[0] * static_cast<float>(dots[0] + dots[1]);
  if (form == CodeForm::half_minima) {
    const int minima = w.minimum_code[0] * x.half_sum[0] + w.minimum_code[1] * x.half_sum[1];
    t = std::fma(w.minimum, static_cast<float>(minima), t);
  }
  sum = std::fma(x.scale, t, sum);
  return form == CodeForm::minimum ? std::fma(x.scaled_sum, w.minimum, sum) : sum;
}

float dot_q8(CodeForm form, const Codes* w, const std::byte* x, std::uint32_t blocks) {
  const auto* block = reinterpret_cast<const Q8Block*>(x);
  float sum = 0;
  for (std::uint32_t b = 0; b < blocks; ++b) sum = add_block(form, w[b], block[b], sum);
  float refined = 0;
  for_each_term(x, blocks, [&](std::uint32_t b, const Q8Block& term) {
    refined = add_block(form, w[b], term, refined);
  });
  return sum + refined;
}

// One weight row in the form that the activations' format wants, in scratch.
void unpack_row(const RawProduct& product, const std::uint8_t* row, std::byte* scratch) {
  switch (product.format) {
    case ActivationFormat::f32:
      return dequantize_columns(product.type, row, 0, product.cols,
                                reinterpret_cast<float*>(scratch));
    case ActivationFormat::bf16: {
      auto* out = reinterpret_cast<std::uint16_t*>(scratch);
      for (std::uint32_t i = 0; i < product.cols; ++i) {
        std::uint16_t bits = 0;
        std::memcpy(&bits, row + 2 * std::size_t{i}, sizeof bits);
        out[i] = product.type == ElementType::f16 ? f32_to_bf16(f16_to_f32(bits)) : bits;
      }
      std::fill(out + product.cols, out + (product.cols + 15) / 16 * 16, std::uint16_t{0});
      return;
    }
    case ActivationFormat::q8:
      return read_codes(product.type, row, 0, product.cols / kQ8Length,
                        reinterpret_cast<Codes*>(scratch));
  }
}

float dot(const RawProduct& product, const std::byte* unpacked, const std::byte* x) {
  switch (product.format) {
    case ActivationFormat::f32:
      return dot_f32(reinterpret_cast<const float*>(unpacked), reinterpret_cast<const float*>(x),
                     product.cols);
    case ActivationFormat::bf16:
      return dot_bf16(reinterpret_cast<const std::uint16_t*>(unpacked),
                      reinterpret_cast<const std::uint16_t*>(x), product.cols);
    case ActivationFormat::q8:
      break;
  }
  return dot_q8(code_form(product.type), reinterpret_cast<const Codes*>(unpacked), x,
                product.cols / kQ8Length);
}

}  // namespace

namespace scalar {

void prepare(ActivationFormat format, Refinement refinement, const float* x, std::uint32_t cols,
             std::byte* out) {
  std::memset(out, 0, prepared_row_bytes(format, cols));
  switch (format) {
    case ActivationFormat::f32:
      std::memcpy(out, x, cols * sizeof(float));
      return;
    case ActivationFormat::bf16: {
      auto* row = reinterpret_cast<std::uint16_t*>(out);
      for (std::uint32_t i = 0; i < cols; ++i) row[i] = flush_to_bf16(x[i]);
      return;
    }
    case ActivationFormat::q8: {
      auto* row = reinterpret_cast<Q8Block*>(out);
      float values[kQ8Length];
      const auto load = [&](std::uint32_t block) {
        const std::uint32_t begin = block * kQ8Length;
        std::fill_n(values, kQ8Length, 0.0F);
        std::copy_n(x + begin, std::min<std::uint32_t>(kQ8Length, cols - begin), values);
      };
      for (std::uint32_t b = 0; b < q8_blocks(cols); ++b) {
        load(b);
        prepare_q8_block(values, row[b]);
      }
      add_terms(refinement, out, q8_blocks(cols),
                [&](std::uint32_t b, const Q8Block& block, Q8Block& term) {
                  load(b);
                  for (int i = 0; i < kQ8Length; ++i) {
                    values[i] = std::fma(-block.scale, static_cast<float>(block.q[i]), values[i]);
                  }
                  prepare_q8_block(values, term);
                });
      return;
    }
  }
}

void multiply(const RawProduct& product, std::uint32_t row_begin, std::uint32_t row_end,
              std::byte* scratch) {
  for (std::uint32_t r = row_begin; r < row_end; ++r) {
    unpack_row(product, product.weights + r * product.row_bytes, scratch);
    for (std::uint32_t t = 0; t < product.tokens; ++t) {
      float sum = dot(product, scratch, product.x + t * product.x_stride);
      if (product.bias != nullptr) sum += product.bias[r];
      float& y = product.out[t * product.out_stride + r];
      switch (product.epilogue) {
        case Epilogue::store:
          y = sum;
          break;
        case Epilogue::add:
          y += sum;
          break;
        case Epilogue::silu_multiply:
          y = silu<ScalarOps>(y) * sum;
          break;
        case Epilogue::gelu_multiply:
          y = gelu<ScalarOps>(y) * sum;
          break;
      }
    }
  }
}

void apply_gate(Epilogue epilogue, const float* s, std::uint32_t size, float* y) {
  for (std::uint32_t i = 0; i < size; ++i) {
    y[i] = (epilogue == Epilogue::silu_multiply ? silu<ScalarOps>(y[i]) : gelu<ScalarOps>(y[i])) *
           s[i];
  }
}

}  // namespace scalar
}  // namespace edgerunner::cpu
