#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace edgerunner {

// Threads that live as long as the pool and walk through one function together, the caller among
// them: a parallel region of many loops, so that a forward pass wakes the threads once.
//
// A worker begins with the part of a loop that its own index says, the same in every loop of as
// many indices, and from front to back; so it reads on in memory, and takes what it does from a
// cache line that nobody else writes. Who has finished helps the others, from the backs of their
// parts.
//
// A loop ends when its last index has been done, not when every thread has arrived: a thread that
// sleeps or lost its core is not waited for, unless it holds indices; when it comes back it passes
// by the loops that the others have finished. Who waits spins briefly, then sleeps.
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

  // Indices [begin, end) of a loop.
  struct Part {
    std::uint32_t begin;
    std::uint32_t end;
  };
  // The part of a loop of `count` indices that a worker begins with.
  Part part_of(int worker, std::uint32_t count) const;
  // Takes the next of the worker's own part: one, or three quarters of what is left; nothing where
  // it is empty.
  Part take(std::uint32_t loop, std::uint32_t count, int worker, bool by_ranges);
  // Takes the last one of another worker's part.
  Part take_last(std::uint32_t loop, std::uint32_t count, int worker);
  // Counts `indices` as done; true with the loop's last, whose thread then opens the next loop.
  bool complete(std::uint32_t indices, std::uint32_t count);
  void open_next(std::uint32_t loop);
  bool is_finished(std::uint32_t loop) const;
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
  alignas(64) std::atomic<std::uint32_t> done_{0};      // indices done of the running loop
  alignas(64) std::atomic<std::uint32_t> finished_{0};  // loops
  std::atomic<bool> stopping_{false};
  // What has been taken of a worker's part: see Progress in the source.
  struct alignas(64) Taken {
    std::atomic<std::uint64_t> packed{0};
  };
  std::vector<Taken> taken_;
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

  // The same; and a worker that has to wait calls idle() before.
  template <class Body, class Idle>
  void for_each(std::uint32_t count, Body&& body, Idle&& idle) {
    run(
        count, false, [&](std::uint32_t begin, std::uint32_t) { body(begin); }, idle);
  }

  // The same, but calls body(begin, end) for ranges, the first of them long: for loops so short
  // that taking an index and beginning with it tell.
  template <class Body, class Idle>
  void for_ranges(std::uint32_t count, Body&& body, Idle&& idle) {
    run(count, true, body, idle);
  }

  // Where in a loop of `count` indices this worker begins.
  std::uint32_t first_of(std::uint32_t count) const { return pool_->part_of(index_, count).begin; }
  // And one past the last index of the part that it begins with.
  std::uint32_t end_of(std::uint32_t count) const { return pool_->part_of(index_, count).end; }

 private:
  friend class ThreadPool;
  Worker(ThreadPool& pool, int index) : pool_(&pool), loop_(pool.first_loop_), index_(index) {}

  template <class Body, class Idle>
  void run(std::uint32_t count, bool by_ranges, const Body& body, const Idle& idle) {
    if (count == 0) return;
    if (pool_->size_ == 1) {
      if (by_ranges) {
        body(0U, count);
      } else {
        for (std::uint32_t i = 0; i < count; ++i) body(i, i + 1);
      }
      return;
    }
    const std::uint32_t loop = loop_++;
    const auto complete = [&](std::uint32_t indices) {
      if (pool_->complete(indices, count)) pool_->open_next(loop);
    };
    std::uint32_t done = 0;
    for (;;) {
      const Part part = pool_->take(loop, count, index_, by_ranges);
      if (part.begin == part.end) break;
      body(part.begin, part.end);
      done += part.end - part.begin;
    }
    if (done > 0) complete(done);
    for (int i = 1; i < pool_->size_; ++i) {
      const int other = (index_ + i) % pool_->size_;
      for (;;) {
        const Part part = pool_->take_last(loop, count, other);
        if (part.begin == part.end) break;
        body(part.begin, part.end);
        complete(1);
      }
    }
    if (!pool_->is_finished(loop)) idle();
    pool_->wait_for(loop);
  }

  ThreadPool* pool_;
  std::uint32_t loop_;  // number of the next loop
  int index_;
};

}  // namespace edgerunner
