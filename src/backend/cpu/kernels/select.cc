#include <algorithm>
#include <string>

#include "backend/cpu/kernels/codes.h"
#include "backend/cpu/kernels/instruction_sets.h"
#include "backend/cpu/kernels/q8_block.h"
#include "backend/cpu/kernels/scratch.h"

namespace edgerunner::cpu {
namespace {

using RawMultiply = void (*)(const RawProduct&, std::uint32_t, std::uint32_t, std::byte*);

RawProduct raw(const Product& product) {
  const Matrix& w = *product.weights;
  return {.type = w.type,
          .weights = reinterpret_cast<const std::uint8_t*>(w.data.data()),
          .row_bytes = row_bytes(w.type, w.cols),
          .rows = w.rows,
          .cols = w.cols,
          .bias = product.bias,
          .format = product.x.format,
          .x = product.x.data,
          .x_stride = product.x.row_stride,
          .tokens = product.x.rows,
          .out = product.out,
          .out_stride = product.out_stride,
          .epilogue = product.epilogue,
          .gate = nullptr,
          .operand = product.operand,
          .then = reinterpret_cast<const std::uint8_t*>(product.then)};
}

// Gates are taken into a pass over the rows with more than kFusedAbove rows of activations: fewer
// are multiplied with one stream of weights at a time.
template <RawMultiply kMultiply, std::uint32_t kFusedAbove>
void multiply(const Product& product, std::uint32_t row_begin, std::uint32_t row_end,
              std::byte* scratch) {
  RawProduct main = raw(product);
  if (product.gate == nullptr) return kMultiply(main, row_begin, row_end, scratch);
  RawProduct gate = raw(*product.gate);
  gate.operand = main.operand;
  if (main.tokens > kFusedAbove && gate.format == main.format) {
    main.gate = &gate;
  } else {
    gate.then = main.weights + row_begin * main.row_bytes;
    main.then = main.then != nullptr ? main.then : gate.weights + row_end * gate.row_bytes;
    kMultiply(gate, row_begin, row_end, scratch);
  }
  kMultiply(main, row_begin, row_end, scratch);
}

std::string describe_scalar(ElementType weights, ActivationFormat format, std::uint32_t) {
  const std::string name(traits(weights).name);
  switch (format) {
    case ActivationFormat::f32:
      return name + ": portable, a row at a time, f32";
    case ActivationFormat::bf16:
      return name + ": portable, a row at a time, bf16";
    case ActivationFormat::q8:
      break;
  }
  return name + ": portable, a row at a time, 8-bit integers";
}

// Up to `in_order` rows of activations take weights in the order of memory.
[[maybe_unused]] std::string describe_panels(ElementType weights, const char* unit,
                                             std::uint32_t rows, std::uint32_t in_order,
                                             std::uint32_t in_level1) {
  return std::string(traits(weights).name) + ": " + unit +
         (rows <= in_order    ? ", weights in the order of memory"
          : rows <= in_level1 ? ", panels in the level 1 cache"
                              : ", panels in the level 2 cache");
}

constexpr Kernels kScalar{Isa::scalar, scalar::prepare, multiply<scalar::multiply, UINT32_MAX>,
                          scalar::apply_gate, describe_scalar};

#if defined(__x86_64__)

std::string describe_avx2(ElementType weights, ActivationFormat format, std::uint32_t rows) {
  switch (format) {
    case ActivationFormat::f32:
      return describe_panels(weights, "AVX2 f32", rows, 0, kFewTokens);
    case ActivationFormat::bf16:
      return describe_panels(weights, "AVX2 bf16 by f32", rows, kAvx2Bf16Tokens, 0);
    case ActivationFormat::q8:
      break;
  }
  const bool minimum = code_form(weights) == CodeForm::minimum;
  return describe_panels(weights, "AVX2 8-bit", rows, minimum ? kRowTokens - 1 : kRowTokens,
                         kFewTokens);
}

std::string describe_avx512(ElementType weights, ActivationFormat format, std::uint32_t rows) {
  switch (format) {
    case ActivationFormat::f32: {
      const bool quantised = activation_format(weights, Precision::fast) == ActivationFormat::q8;
      return describe_panels(weights, "AVX-512 f32", rows, quantised ? 0 : kFloatRowTokens,
                             kFewTokens);
    }
    case ActivationFormat::bf16:
      return describe_panels(weights, "AVX-512 BF16", rows, kAvx512Bf16Tokens, 0);
    case ActivationFormat::q8:
      break;
  }
  if (rows == 1 && takes_eight_rows_for_one(weights)) {
    return std::string(traits(weights).name) + ": AVX-512 VNNI, eight weight rows at a time";
  }
  const std::uint32_t in_order = transposes_for_one_row(weights) ? 0 : 1;
  if (rows > in_order && rows <= kDirectTokens) {
    return std::string(traits(weights).name) + ": AVX-512 VNNI, weights transposed in registers";
  }
  return describe_panels(weights, "AVX-512 VNNI", rows, in_order, kFewTokens);
}

std::string describe_amx(ElementType weights, ActivationFormat format, std::uint32_t rows) {
  if (format == ActivationFormat::bf16) {
    return describe_panels(weights, "AMX BF16", rows, kDirectTokens, 0);
  }
  return describe_avx512(weights, format, rows);
}

constexpr Kernels kAvx2{Isa::avx2, avx2::prepare, multiply<avx2::multiply, kRowTokens>,
                        avx2::apply_gate, describe_avx2};
constexpr Kernels kAvx512{Isa::avx512, avx512::prepare, multiply<avx512::multiply, kDirectTokens>,
                          avx512::apply_gate, describe_avx512};
constexpr Kernels kAmx{Isa::amx, amx::prepare, multiply<amx::multiply, kDirectTokens>,
                       amx::apply_gate, describe_amx};

#elif defined(__aarch64__)

std::string describe_neon_panels(ElementType weights, ActivationFormat format, std::uint32_t rows,
                                 const char* q8) {
  switch (format) {
    case ActivationFormat::f32:
      return describe_panels(weights, "NEON f32", rows, 0, kFewTokens);
    case ActivationFormat::bf16:
      return describe_panels(weights, "NEON bf16 by f32", rows, kNeonBf16Tokens, 0);
    case ActivationFormat::q8:
      break;
  }
  return describe_panels(weights, q8, rows, 0, kFewTokens);
}

std::string describe_neon(ElementType weights, ActivationFormat format, std::uint32_t rows) {
  return describe_neon_panels(weights, format, rows, "NEON dot product");
}

std::string describe_neon_i8mm(ElementType weights, ActivationFormat format, std::uint32_t rows) {
  return describe_neon_panels(weights, format, rows, "NEON I8MM");
}

constexpr Kernels kNeon{Isa::neon, neon::prepare, multiply<neon::multiply, kRowTokens>,
                        neon::apply_gate, describe_neon};
constexpr Kernels kNeonI8mm{Isa::neon_i8mm, neon_i8mm::prepare,
                            multiply<neon_i8mm::multiply, kRowTokens>, neon_i8mm::apply_gate,
                            describe_neon_i8mm};

#endif

}  // namespace

ActivationFormat activation_format(ElementType weights, Precision precision) {
  if (precision == Precision::exact || weights == ElementType::f32) return ActivationFormat::f32;
  if (weights == ElementType::f16 || weights == ElementType::bf16) return ActivationFormat::bf16;
  return ActivationFormat::q8;
}

std::size_t prepared_row_bytes(ActivationFormat format, std::uint32_t cols) {
  std::size_t bytes = 0;
  switch (format) {
    case ActivationFormat::f32:
      bytes = cols * sizeof(float);
      break;
    case ActivationFormat::bf16:
      bytes = cols * sizeof(std::uint16_t);
      break;
    case ActivationFormat::q8:
      bytes = q8_row_bytes(q8_blocks(cols));
      break;
  }
  return (bytes + 63) / 64 * 64;
}

std::size_t multiply_scratch_bytes(std::uint32_t max_cols) {
  const std::size_t scalar_row =
      std::max((max_cols + 15) * sizeof(float), (max_cols / kQ8Length + 1) * sizeof(Codes));
  return std::max(Scratch::kBytes + (max_cols / kQ8Length + 1) * Scratch::kStepBytes,
                  (scalar_row + 63) / 64 * 64);
}

const Kernels& kernels(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::avx2:
      return kAvx2;
    case Isa::avx512:
      return kAvx512;
    case Isa::amx:
      return kAmx;
#elif defined(__aarch64__)
    case Isa::neon:
      return kNeon;
    case Isa::neon_i8mm:
      return kNeonI8mm;
#endif
    default:
      return kScalar;
  }
}

}  // namespace edgerunner::cpu
