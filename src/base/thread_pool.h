#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace edgerunner {

// Threads that live as long as the pool and walk through one function together, the caller among
// them: a parallel region of many loops, so that a forward pass wakes the threads once.
//
// A loop ends when its last index has been done, not when every thread has arrived: a thread that
// sleeps or lost its core is not waited for, unless it holds an index; when it comes back it
// passes by the loops that the others have finished. Who waits spins briefly, then sleeps.
class ThreadPool {
 public:
  class Worker;

  // `threads` in total, at least 1. Where there are more threads than cores, waiters don't spin.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return size_; }

  // Calls body(worker) on the calling thread, and on those of the others that are there before it
  // has returned; returns when all have left it. Allocates nothing. `body` must not throw; outside
  // of its loops it must read nothing that a loop writes. One region at a time.
  template <class Body>
  void run(Body&& body) {
    start([](void* context, Worker& worker) noexcept { (*static_cast<Body*>(context))(worker); },
          &body);
  }

 private:
  using Entry = void (*)(void* context, Worker& worker) noexcept;

  void start(Entry entry, void* context);
  void serve(int index);
  // Takes part in the open region, unless there is none but `seen`; returns the region's number.
  std::uint32_t join(int index, std::uint32_t seen);
  template <class Loaded>
  void wait_while(const std::atomic<Loaded>& value, Loaded old) const;

  bool claim(std::uint32_t loop, std::uint32_t count, std::uint32_t& index);
  // Counts an index as done; true for the loop's last, whose thread then opens the next loop.
  bool complete(std::uint32_t count);
  void open_next(std::uint32_t loop);
  void wait_for(std::uint32_t loop) const;

  const int size_;
  const int spins_;
  // Of the open region; written while nobody is in it.
  Entry entry_ = nullptr;
  void* context_ = nullptr;
  std::uint32_t first_loop_ = 0;
  // Each on a cache line of its own, as all threads write them. Loops and regions are numbered on
  // and on; the numbers may wrap around.
  alignas(64) std::atomic<std::uint32_t> regions_{0};   // the latest region's number
  alignas(64) std::atomic<std::uint64_t> gate_;         // region, closed bit, threads inside
  alignas(64) std::atomic<std::uint64_t> next_{0};      // running loop, next index to do
  alignas(64) std::atomic<std::uint32_t> done_{0};      // indices done of the running loop
  alignas(64) std::atomic<std::uint32_t> finished_{0};  // loops
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

// One thread's walk through a region.
class ThreadPool::Worker {
 public:
  int index() const { return index_; }
  int count() const { return pool_->size_; }

  // Calls body(i) once for each i below `count`, on whichever worker is free, and returns when all
  // are done and what they wrote can be seen. All workers must make the same calls in the same
  // order.
  template <class Body>
  void for_each(std::uint32_t count, Body&& body) {
    for_each(count, body, [] {});
  }

  // The same, and then calls end() once, on the worker that did the last index, which sees what all
  // have written: for a step too short to be worth a loop of its own.
  template <class Body, class End>
  void for_each(std::uint32_t count, Body&& body, End&& end) {
    if (pool_->size_ == 1) {
      for (std::uint32_t i = 0; i < count; ++i) body(i);
      if (count > 0) end();
      return;
    }
    if (count == 0) return;
    const std::uint32_t loop = loop_++;
    for (std::uint32_t i = 0; pool_->claim(loop, count, i);) {
      body(i);
      if (pool_->complete(count)) {
        end();
        pool_->open_next(loop);
      }
    }
    pool_->wait_for(loop);
  }

 private:
  friend class ThreadPool;
  Worker(ThreadPool& pool, int index) : pool_(&pool), loop_(pool.first_loop_), index_(index) {}

  ThreadPool* pool_;
  std::uint32_t loop_;  // number of the next loop
  int index_;
};

}  // namespace edgerunner
