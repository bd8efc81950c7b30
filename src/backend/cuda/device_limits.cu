#include "backend/cuda/device_limits.h"

#include <algorithm>
#include <cstdint>

#include "backend/cuda/mma.cuh"

namespace edgerunner::cuda {
namespace {

constexpr int kRepetitions = 5;

// Four loads of 16 bytes in flight a thread.
__global__ void __launch_bounds__(1024)
    read_kernel(const uint4* data, std::size_t count, std::uint32_t* out) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  std::uint32_t sum = 0;
  std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; i + 3 * stride < count; i += 4 * stride) {
    const uint4 a = __ldcs(data + i);
    const uint4 b = __ldcs(data + i + stride);
    const uint4 c = __ldcs(data + i + 2 * stride);
    const uint4 d = __ldcs(data + i + 3 * stride);
    sum ^= a.x ^ a.y ^ a.z ^ a.w ^ b.x ^ b.y ^ b.z ^ b.w;
    sum ^= c.x ^ c.y ^ c.z ^ c.w ^ d.x ^ d.y ^ d.z ^ d.w;
  }
  if (sum == 0x12345679U) *out = sum;  // never, but the compiler can't know
}

constexpr int kRounds = 4096;
constexpr int kChains = 8;  // independent, so that none waits for its result

__global__ void __launch_bounds__(256) f32_kernel(float a, float b, float* out) {
  float x[kChains];
  for (int i = 0; i < kChains; ++i) x[i] = static_cast<float>(threadIdx.x + i);
  for (int round = 0; round < kRounds; ++round) {
#pragma unroll
    for (int i = 0; i < kChains; ++i) x[i] = fmaf(x[i], a, b);
  }
  float sum = 0;
  for (int i = 0; i < kChains; ++i) sum += x[i];
  if (sum == 1.2345F) *out = sum;
}

__global__ void __launch_bounds__(256) int8_kernel(int a, int b, int* out) {
  int x[kChains];
  for (int i = 0; i < kChains; ++i) x[i] = static_cast<int>(threadIdx.x) + i;
  for (int round = 0; round < kRounds; ++round) {
#pragma unroll
    for (int i = 0; i < kChains; ++i) x[i] = __dp4a(a, b + i, x[i]);
  }
  int sum = 0;
  for (int i = 0; i < kChains; ++i) sum += x[i];
  if (sum == 12345) *out = sum;
}

__global__ void __launch_bounds__(256) half_kernel(std::uint32_t a, std::uint32_t b, float* out) {
  float x[kChains][4] = {};
  const std::uint32_t lane = threadIdx.x * 0x10001U & 0x00FF00FFU;
  for (int round = 0; round < kRounds; ++round) {
#pragma unroll
    for (int i = 0; i < kChains; ++i) {
      mma_f16(x[i], a ^ lane, a, a ^ lane, a, b, b ^ lane);
    }
  }
  float sum = 0;
  for (int i = 0; i < kChains; ++i) sum += x[i][0] + x[i][1] + x[i][2] + x[i][3];
  if (sum == 1.2345F) *out = sum;
}

// The least time of `launch` in seconds.
template <typename Launch>
double least_seconds(const Launch& launch) {
  const Stream stream;
  const Event begin;
  const Event end;
  float least = 1e9F;
  for (int i = 0; i <= kRepetitions; ++i) {
    check(cudaEventRecord(begin, stream), "measuring the GPU");
    launch(static_cast<cudaStream_t>(stream));
    check(cudaGetLastError(), "measuring the GPU");
    check(cudaEventRecord(end, stream), "measuring the GPU");
    check(cudaEventSynchronize(end), "measuring the GPU");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "measuring the GPU");
    if (i > 0) least = std::min(least, milliseconds);  // the first one warms up
  }
  return least * 1e-3;
}

}  // namespace

MachineLimits measure_device_limits(const DeviceProperties& device) {
  const auto blocks = static_cast<unsigned>(device.multiprocessors);
  const DeviceBuffer out(sizeof(float));
  MachineLimits limits;
  {
    DeviceProperties now = device_properties();
    const std::size_t bytes =
        std::min<std::size_t>(std::size_t{2} << 30, now.free_bytes / 4) / 65536 * 65536;
    const DeviceBuffer data(bytes);
    check(cudaMemset(data.as<void>(), 0x5A, bytes), "measuring the GPU");
    const double seconds = least_seconds([&](cudaStream_t stream) {
      read_kernel<<<2 * blocks, 1024, 0, stream>>>(data.as<uint4>(), bytes / sizeof(uint4),
                                                   out.as<std::uint32_t>());
    });
    limits.read_bytes = static_cast<double>(bytes) / seconds;
  }
  constexpr unsigned kThreads = 256;
  const unsigned grid = 8 * blocks;
  const double steps = static_cast<double>(grid) * kThreads * kRounds * kChains;
  const auto rate = [&](double operations_a_step, const auto& launch) {
    return steps * operations_a_step / least_seconds(launch);
  };
  limits.operations[static_cast<std::size_t>(Arithmetic::f32)] = rate(
      2, [&](cudaStream_t s) { f32_kernel<<<grid, kThreads, 0, s>>>(0.5F, 1, out.as<float>()); });
  limits.operations[static_cast<std::size_t>(Arithmetic::int8)] =
      rate(8, [&](cudaStream_t s) { int8_kernel<<<grid, kThreads, 0, s>>>(3, 5, out.as<int>()); });
  // 16 x 8 x 16 multiply-adds a warp.
  limits.operations[static_cast<std::size_t>(Arithmetic::half)] =
      rate(2.0 * 16 * 8 * 16 / 32, [&](cudaStream_t s) {
        half_kernel<<<grid, kThreads, 0, s>>>(0x3C003A00U, 0x2E002C00U, out.as<float>());
      });
  return limits;
}

}  // namespace edgerunner::cuda
