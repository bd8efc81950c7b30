#include "backend/cuda/choose.h"

// The steps of choice_steps.h, a kernel each, for all rows of a batch at once. Compiled without
// fused multiplication and addition, so that a token weighs what it weighs on the host.

namespace edgerunner::cuda {
namespace {

constexpr std::uint32_t kThreads = 256;
constexpr std::uint32_t kWarps = kThreads / 32;
// A thread reads eight logits: fewer, and blocks that start and end take longer than they work.
constexpr std::uint32_t kTokensOfABlock = kThreads * 8;
static_assert(kBins % kThreads == 0);

// What a block's threads tell each other.
struct Shared {
  std::uint64_t sums[kWarps];
  struct Border {
    std::uint32_t bin;
    bool too_many;
    std::uint64_t weight_before;
  } border;
  TokenId chosen;
};

class DeviceTeam {
 public:
  __device__ explicit DeviceTeam(Shared& shared) : shared_(shared) {
    if (threadIdx.x == 0) shared_.chosen = kNoToken;
    __syncthreads();
  }
  __device__ std::uint32_t rank() const { return blockIdx.x * kThreads + threadIdx.x; }
  __device__ std::uint32_t size() const { return gridDim.x * kThreads; }
  __device__ std::uint32_t block_rank() const { return threadIdx.x; }
  __device__ std::uint32_t block_size() const { return kThreads; }
  __device__ void sync() const { __syncthreads(); }

  __device__ float add(float* to, float x) const { return atomicAdd(to, x); }
  __device__ std::uint32_t add(std::uint32_t* to, std::uint32_t x) const {
    return atomicAdd(to, x);
  }
  __device__ void add(std::uint64_t* to, std::uint64_t x) const { atomicAdd(word(to), x); }
  __device__ std::uint32_t take(std::uint32_t* from) const { return atomicExch(from, 0U); }

  // Every thread of a block brings its own.
  __device__ void max(std::uint64_t* to, std::uint64_t x) const {
    for (int distance = 16; distance > 0; distance /= 2) {
      const auto other = __shfl_xor_sync(kAll, static_cast<unsigned long long>(x), distance);
      x = other > x ? other : x;
    }
    if (lane() == 0) atomicMax(word(to), x);
  }
  __device__ void max(std::uint32_t* to, std::uint32_t x) const {
    const std::uint32_t largest = __reduce_max_sync(kAll, x);
    if (lane() == 0) atomicMax(to, largest);
  }
  __device__ std::uint64_t sum(std::uint64_t x) const { return scan(x).total; }
  __device__ std::uint64_t sum_before(std::uint64_t x) const { return scan(x).before; }

  __device__ void tell(const Shared::Border& border) const { shared_.border = border; }
  __device__ Shared::Border told() const { return shared_.border; }
  __device__ void choose(TokenId token) const { shared_.chosen = token; }
  __device__ TokenId chosen() const { return shared_.chosen; }

 private:
  static constexpr unsigned kAll = 0xFFFFFFFFU;
  struct Scan {
    std::uint64_t before;
    std::uint64_t total;
  };

  __device__ static std::uint32_t lane() { return threadIdx.x & 31; }
  __device__ static unsigned long long* word(std::uint64_t* p) {
    return reinterpret_cast<unsigned long long*>(p);
  }
  __device__ Scan scan(std::uint64_t x) const {
    std::uint64_t inclusive = x;
    for (std::uint32_t distance = 1; distance < 32; distance *= 2) {
      const std::uint64_t other =
          __shfl_up_sync(kAll, static_cast<unsigned long long>(inclusive), distance);
      if (lane() >= distance) inclusive += other;
    }
    __syncthreads();
    if (lane() == 31) shared_.sums[threadIdx.x / 32] = inclusive;
    __syncthreads();
    Scan result{inclusive - x, 0};
    for (std::uint32_t warp = 0; warp < kWarps; ++warp) {
      if (warp < threadIdx.x / 32) result.before += shared_.sums[warp];
      result.total += shared_.sums[warp];
    }
    return result;
  }

  Shared& shared_;
};

__device__ ChoiceRow row_of(const ChoiceRows& rows) {
  const std::size_t row = blockIdx.y;
  return {rows.settings + row,
          rows.states + row,
          rows.logits + row * rows.vocab,
          rows.counts + row * rows.vocab,
          rows.history + row * rows.history_room,
          rows.biases + row * kMostBiases,
          rows.bin_weights + row * kBins,
          rows.bin_counts + row * kBins,
          rows.lists + row * kListRoom,
          rows.vocab,
          rows.steps[row]};
}

__global__ void prepare_kernel(ChoiceRows rows) {
  __shared__ Shared shared;
  prepare(DeviceTeam(shared), row_of(rows));
}

__global__ void survey_kernel(ChoiceRows rows) {
  __shared__ Shared shared;
  survey(DeviceTeam(shared), row_of(rows));
}

__global__ void weigh_kernel(ChoiceRows rows) {
  __shared__ Shared shared;
  weigh(DeviceTeam(shared), row_of(rows));
}

__global__ void gather_kernel(ChoiceRows rows) {
  __shared__ Shared shared;
  gather(DeviceTeam(shared), row_of(rows));
}

__global__ void finish_kernel(ChoiceRows rows, TokenId* next_tokens,
                              std::uint32_t* next_positions) {
  __shared__ Shared shared;
  const ChoiceRow by = row_of(rows);
  const TokenId token = finish(DeviceTeam(shared), by);
  if (threadIdx.x != 0) return;
  const std::uint32_t row = blockIdx.y;
  rows.tokens[by.step * rows.rows + row] = token;
  rows.steps[row] = by.step + 1;
  next_tokens[row] = token == kNoToken ? 0 : token;  // a valid one: what follows is not used
  ++next_positions[row];
}

}  // namespace

void launch_choose(const ChoiceRows& rows, TokenId* next_tokens, std::uint32_t* next_positions,
                   cudaStream_t stream) {
  const dim3 each(1, rows.rows);
  const dim3 wide((rows.vocab + kTokensOfABlock - 1) / kTokensOfABlock, rows.rows);
  if (rows.changed) prepare_kernel<<<each, kThreads, 0, stream>>>(rows);
  survey_kernel<<<wide, kThreads, 0, stream>>>(rows);
  if (rows.drawn) {
    weigh_kernel<<<wide, kThreads, 0, stream>>>(rows);
    gather_kernel<<<wide, kThreads, 0, stream>>>(rows);
  }
  finish_kernel<<<each, kThreads, 0, stream>>>(rows, next_tokens, next_positions);
}

}  // namespace edgerunner::cuda
