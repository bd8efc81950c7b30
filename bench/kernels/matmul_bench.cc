// matmul_bench [--isa avx512] [--threads 2] [--cols 2048] [--precision fast|exact]
//              [--types Q8_0,Q4_K] [--tokens 1,8,128] [--kib 131072]
// Times the matrix products of each type for each number of rows of activations, beside what the
// machine can read and compute, and checks the results bit for bit against the portable kernels, or
// where AMX has an order of its own against that.
// --kib is the size of the weights that few tokens are multiplied with: with less than a cache
// holds, the product is timed without the memory.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "backend/cpu/limits/machine_limits.h"
#include "cpu/kernels/random_weights.h"
#include "cpu/kernels/run_product.h"
#include "cpu/kernels/tile_order.h"

namespace edgerunner {
namespace {

struct Options {
  Isa isa = chosen_isa();
  int threads = available_cores();
  std::uint32_t cols = 2048;
  Precision precision = Precision::fast;
  double bytes = 128e6;  // past the caches, as in decode
  std::vector<ElementType> types;
  std::vector<std::uint32_t> tokens = {1, 2, 4, 8, 16, 128, 512};
};

Options parse(int argc, char** argv) {
  Options options;
  std::string isa(name(options.isa));
  std::string precision = "fast";
  std::vector<std::string> types;
  double kib = options.bytes / 1024;
  CLI::App app("Times matrix products and checks their bits", "matmul_bench");
  app.add_option("--isa", isa)->check(CLI::IsMember({"scalar", "avx2", "avx512", "amx"}));
  app.add_option("--threads", options.threads)->check(CLI::Range(1, 1024));
  app.add_option("--cols", options.cols)->check(CLI::Range(32, 1 << 20));
  app.add_option("--precision", precision)->check(CLI::IsMember({"fast", "exact"}));
  app.add_option("--types", types)->delimiter(',')->check([](const std::string& type) {
    return element_type_from_name(type) ? std::string() : "there is no type " + type;
  });
  app.add_option("--tokens", options.tokens)->delimiter(',')->check(CLI::Range(1, 1 << 16));
  app.add_option("--kib", kib)->check(CLI::PositiveNumber);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  for (const Isa candidate : {Isa::scalar, Isa::avx2, Isa::avx512, Isa::amx}) {
    if (name(candidate) == isa) options.isa = candidate;
  }
  if (options.isa == Isa::amx && !may_use_amx()) {
    fmt::print(stderr, "matmul_bench: this process can't use AMX\n");
    std::exit(1);
  }
  options.precision = precision == "exact" ? Precision::exact : Precision::fast;
  options.bytes = 1024 * kib;
  for (const std::string& type : types) options.types.push_back(*element_type_from_name(type));
  if (types.empty()) options.types = test::weight_types();
  return options;
}

// A matrix of many rows, the same 96 again and again.
std::vector<std::byte> repeat(const Matrix& pattern, std::uint32_t rows) {
  std::vector<std::byte> bytes(rows * row_bytes(pattern.type, pattern.cols));
  for (std::size_t at = 0; at < bytes.size(); at += pattern.data.size()) {
    std::memcpy(bytes.data() + at, pattern.data.data(),
                std::min(pattern.data.size(), bytes.size() - at));
  }
  return bytes;
}

bool same_as_reference(Isa isa, const Matrix& pattern, const std::vector<float>& x,
                       std::uint32_t tokens, cpu::ActivationFormat format, const float* out,
                       std::size_t stride) {
  const test::Prepared prepared(cpu::kernels(Isa::scalar), format, x, pattern.cols);
  std::vector<float> want(std::size_t{tokens} * pattern.rows);
  test::run_reference(isa, {.weights = &pattern,
                            .x = prepared.rows(0, tokens),
                            .out = want.data(),
                            .out_stride = pattern.rows});
  for (std::uint32_t t = 0; t < tokens; ++t) {
    if (std::memcmp(&want[std::size_t{t} * pattern.rows], out + t * stride,
                    pattern.rows * sizeof(float)) != 0) {
      return false;
    }
  }
  return true;
}

// One line of the table; false where the check failed.
bool measure(const Options& options, ElementType type, std::uint32_t tokens, double bandwidth,
             double peak) {
  const cpu::Kernels& kernels = cpu::kernels(options.isa);
  const cpu::ActivationFormat format = cpu::activation_format(type, options.precision);
  const test::RandomWeights pattern_weights(type, 96, options.cols, 1);
  const Matrix pattern = pattern_weights.matrix(96);
  // Of many tokens about 2e9 operations.
  const double wanted = tokens <= 16
                            ? options.bytes / static_cast<double>(row_bytes(type, options.cols))
                            : 1e9 / tokens / options.cols;
  const std::uint32_t unit = 96 * static_cast<std::uint32_t>(options.threads);
  const std::uint32_t rows = std::max(1U, static_cast<std::uint32_t>(wanted / unit)) * unit;
  const std::vector<std::byte> bytes = repeat(pattern, rows);
  const Matrix matrix{.type = type, .rows = rows, .cols = options.cols, .data = bytes};
  const auto x = test::random_activations(test::Kind::normal, tokens, options.cols, 2);
  const test::Prepared prepared(kernels, format, x, options.cols);
  std::vector<float> out(std::size_t{rows} * tokens);
  const cpu::Product product{
      .weights = &matrix, .x = prepared.rows(0, tokens), .out = out.data(), .out_stride = rows};
  std::vector<test::AlignedBytes> scratch;
  scratch.reserve(static_cast<std::size_t>(options.threads));
  for (int t = 0; t < options.threads; ++t) {
    scratch.emplace_back(cpu::multiply_scratch_bytes(options.cols));
  }
  const std::uint32_t part = rows / options.threads;
  const int rounds = tokens <= 16 ? std::max(1, static_cast<int>(32e6 / options.bytes)) : 1;
  const double seconds =
      cpu::time_threads(options.threads, 7,
                        [&](int t) {
                          for (int round = 0; round < rounds; ++round) {
                            kernels.multiply(product, part * t, part * (t + 1), scratch[t].data());
                          }
                        }) /
      rounds;
  const bool same = same_as_reference(options.isa, pattern, x, tokens, format, out.data(), rows);
  const double bytes_per_second = static_cast<double>(bytes.size()) / seconds;
  const double operations = 2.0 * rows * options.cols * tokens / seconds;
  fmt::print("{:8}{:>6}{:>10.1f}{:>6.0f} %{:>10.0f}{:>6.0f} %  {}\n", traits(type).name, tokens,
             bytes_per_second / 1e9, 100 * bytes_per_second / bandwidth, operations / 1e9,
             100 * operations / peak, same ? "same bits" : "DIFFERS");
  return same;
}

int run(const Options& options) {
  const MachineLimits limits = cpu::measure_limits(options.isa, options.threads, {});
  const auto [int8, half, f32] = limits.operations;
  fmt::print(
      "{} threads, {}, {} columns\nread {:.1f} GB/s, int8 {:.0f} GOP/s, bf16 {:.0f}, f32 {:.0f}\n",
      options.threads, name(options.isa), options.cols, limits.read_bytes / 1e9, int8 / 1e9,
      half / 1e9, f32 / 1e9);
  fmt::print("type    tokens      GB/s of read     GOP/s of peak\n");
  bool same = true;
  for (const ElementType type : options.types) {
    const cpu::ActivationFormat format = cpu::activation_format(type, options.precision);
    const double peak = format == cpu::ActivationFormat::q8     ? int8
                        : format == cpu::ActivationFormat::bf16 ? half
                                                                : f32;
    for (const std::uint32_t tokens : options.tokens) {
      same = measure(options, type, tokens, limits.read_bytes, peak) && same;
    }
  }
  return same ? 0 : 1;
}

}  // namespace
}  // namespace edgerunner

int main(int argc, char** argv) {
  try {
    return edgerunner::run(edgerunner::parse(argc, argv));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
