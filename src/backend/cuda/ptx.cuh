#pragma once

#include <cstdint>

// The Hopper instructions that CUDA C++ has no spelling for. Source: PTX ISA, "Parallel
// Synchronization and Communication Instructions" and "Data Movement and Conversion Instructions".

namespace edgerunner::cuda {

__device__ inline std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

// A barrier of the block's first `threads` threads.
__device__ inline void sync_threads(std::uint32_t barrier, std::uint32_t threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// Approximations of 1 / x and 1 / sqrt(x) for x that are no subnormal numbers.
__device__ inline float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ inline float reciprocal_root(float x) {
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// Every warp of a warpgroup gives back registers, or takes more: kCount are left to each thread.
template <int kCount>
__device__ inline void keep_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
#endif
}
template <int kCount>
__device__ inline void take_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
#endif
}

__device__ inline void mbarrier_init(std::uint64_t* barrier, std::uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals)
               : "memory");
}

// Makes initialised barriers visible to the copy engine.
__device__ inline void mbarrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ inline void mbarrier_expect(std::uint64_t* barrier, std::uint32_t bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}

__device__ inline void mbarrier_arrive(std::uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}

// Arrives once all asynchronous copies (cp.async) that this thread has begun are complete.
__device__ inline void mbarrier_arrive_after_copies(std::uint64_t* barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier))
               : "memory");
}

// Whether the phase of that parity is complete.
__device__ inline bool mbarrier_test(std::uint64_t* barrier, std::uint32_t parity) {
  std::uint32_t done = 0;
  asm volatile(
      "{\n.reg .pred p;\n"
      "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(done)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return done != 0;
}

__device__ inline void mbarrier_wait(std::uint64_t* barrier, std::uint32_t parity) {
  std::uint32_t done = 0;
  do {
    asm volatile(
        "{\n.reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  } while (done == 0);
}

// The barrier of a cluster's threads, in two halves: what was written before the one is seen after
// the other.
__device__ inline void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
}
__device__ inline void cluster_wait() {
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}

// Writes to the same place of the shared memory of block `rank` of the cluster.
__device__ inline void store_in_cluster(float2* place, std::uint32_t rank, float2 x) {
  asm volatile(
      "{\n.reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "st.shared::cluster.v2.f32 [there], {%2, %3};\n}" ::"r"(shared_address(place)),
      "r"(rank), "f"(x.x), "f"(x.y)
      : "memory");
}

// Copies `bytes` (a multiple of 16, both sides aligned to 16) into shared memory; the barrier
// counts them. The L2 is told to drop them first: they are read once.
__device__ inline void bulk_copy(void* to, const void* from, std::uint32_t bytes,
                                 std::uint64_t* barrier) {
  asm volatile(
      "{\n.reg .b64 once;\n"
      "createpolicy.fractional.L2::evict_first.b64 once, 1.0;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1], %2, [%3], once;\n}" ::"r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}

// Copies the box of a tensor map (tensor_map.h) whose first byte of a row is `byte` and whose first
// row is `row` to `to`, a shared address aligned to 1024; the barrier counts its bytes, zeros too.
template <bool kOnce>
__device__ inline void tensor_copy(std::uint32_t to, const void* map, std::uint32_t byte,
                                   std::uint32_t row, std::uint64_t* barrier) {
  if constexpr (kOnce) {  // the L2 is told to drop them first
    asm volatile(
        "{\n.reg .b64 once;\n"
        "createpolicy.fractional.L2::evict_first.b64 once, 1.0;\n"
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".L2::cache_hint [%0], [%1, {%2, %3}], [%4], once;\n}" ::"r"(to),
        "l"(map), "r"(byte), "r"(row), "r"(shared_address(barrier))
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
        "l"(map), "r"(byte), "r"(row), "r"(shared_address(barrier))
        : "memory");
  }
}

#endif

// Single accesses that other blocks see whole: 8 bytes, and vectors of them.
__device__ inline void store_relaxed(std::uint64_t* p, std::uint64_t x) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(x) : "memory");
}
__device__ inline void store_relaxed(std::uint32_t* p, std::uint32_t x) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(x) : "memory");
}
// Adds one and returns what was there, in order with what the block's threads have written and,
// after the block's next barrier, with what they read.
__device__ inline std::uint32_t count_in_order(std::uint32_t* p) {
  std::uint32_t before;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(p) : "memory");
  return before;
}
__device__ inline std::uint64_t load_relaxed(const std::uint64_t* p) {
  std::uint64_t x;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(x) : "l"(p) : "memory");
  return x;
}
__device__ inline ulonglong2 load_relaxed2(const std::uint64_t* p) {
  ulonglong2 x;
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(x.x), "=l"(x.y)
               : "l"(p)
               : "memory");
  return x;
}
__device__ inline uint4 load_relaxed4(const std::uint32_t* p) {
  uint4 x;
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "l"(p)
               : "memory");
  return x;
}

}  // namespace edgerunner::cuda
