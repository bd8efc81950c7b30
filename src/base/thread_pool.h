#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace edgerunner {

// Threads that live as long as the pool and run one function together, the caller among them: a
// parallel region. Inside of it they share loops and meet at barriers, which cost well under a
// microsecond while everyone is running: a waiter spins briefly, then sleeps. A region holds many
// phases, so that a forward pass wakes the threads once.
class ThreadPool {
 public:
  class Worker;

  // `threads` in total, at least 1. Where there are more threads than cores, waiters don't spin.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return size_; }

  // Runs body(worker) on every thread and returns when all have finished; allocates nothing. `body`
  // must not throw. One region at a time.
  template <class Body>
  void run(Body&& body) {
    start([](void* context, Worker& worker) noexcept { (*static_cast<Body*>(context))(worker); },
          &body);
  }

 private:
  using Entry = void (*)(void* context, Worker& worker) noexcept;

  void start(Entry entry, void* context);
  void serve(int index);
  void wait_while(const std::atomic<std::uint32_t>& value, std::uint32_t old) const;
  void barrier();

  const int size_;
  const int spins_;
  Entry entry_ = nullptr;  // of the region that `regions_` counts last
  void* context_ = nullptr;
  // Each on a cache line of its own, as all threads write them.
  alignas(64) std::atomic<std::uint32_t> regions_{0};
  alignas(64) std::atomic<std::uint32_t> barriers_{0};  // passed so far
  alignas(64) std::atomic<std::uint32_t> arrived_{0};   // at the next barrier
  alignas(64) std::atomic<std::uint32_t> next_{0};      // index of the running loop
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

// One thread's part in a region.
class ThreadPool::Worker {
 public:
  int index() const { return index_; }
  int count() const { return pool_->size_; }

  // Calls body(i) once for each i below `count`, on whichever worker is free, and ends with a
  // barrier. All workers must make the same calls in the same order.
  template <class Body>
  void for_each(std::uint32_t count, Body&& body) {
    if (pool_->size_ == 1) {
      for (std::uint32_t i = 0; i < count; ++i) body(i);
      return;
    }
    for (;;) {
      const std::uint32_t i = pool_->next_.fetch_add(1, std::memory_order_relaxed);
      if (i >= count) break;
      body(i);
    }
    barrier();
  }

  // What any worker wrote before it, all workers see after it.
  void barrier() { pool_->barrier(); }

 private:
  friend class ThreadPool;
  Worker(ThreadPool& pool, int index) : pool_(&pool), index_(index) {}

  ThreadPool* pool_;
  int index_;
};

}  // namespace edgerunner
