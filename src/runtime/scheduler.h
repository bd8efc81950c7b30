#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "backend/executor.h"
#include "backend/token_chooser.h"
#include "runtime/burst_length.h"
#include "runtime/chunk_length.h"
#include "runtime/drafter.h"
#include "runtime/kv_cache.h"
#include "runtime/speculator.h"
#include "runtime/task.h"

namespace edgerunner {

struct SchedulerOptions {
  std::uint32_t vocab_size = 0;
  std::uint32_t prefill_chunk = 512;      // most prompt rows of one forward pass
  std::uint32_t max_sequences = 8;        // that run at once; others wait
  std::uint32_t window = 0;               // DecoderSpec::common_window()
  std::uint32_t dim = 0;                  // DecoderSpec::dim, for tasks that want hidden states
  ChunkLength::Duration longest_step{0};  // that prompts may make a forward pass; 0: no bound
  BurstLength::Duration longest_burst = BurstLength::kLongest;  // of tokens the backend chooses
  std::uint32_t draft_tokens = 16;  // most that are guessed of a sequence, with a drafter
  bool adaptive_drafts = true;      // fewer where that is faster
  bool lookup = false;              // guesses by lookup where there is no drafter
};

// What a scheduler is doing, as of its last step.
struct SchedulerStatus {
  std::uint32_t running = 0;
  std::uint32_t waiting = 0;
  std::uint32_t pages = 0;         // of the KV cache
  std::uint32_t used_pages = 0;    // by running sequences
  std::uint32_t cached_pages = 0;  // that hold a prefix and that no sequence uses
};

// Continuous batching on one thread, which alone uses the executor. Each step runs one forward pass
// over the next token of every running sequence and a chunk of the prompts that aren't computed
// yet, shared out evenly among them. It sleeps while there is nothing to do.
//
// With a drafter, a sequence that decodes gets rows for guesses of its coming tokens too. Its task
// sees the logits after them as if one pass after another had computed them, as long as it goes on
// with the tokens that were guessed; what was computed after a wrong guess is never committed to
// the cache, and the next pass writes over it.
//
// When pages run out, the sequence that was submitted last gives its up and waits to be computed
// again, which changes nothing but its time: the one submitted first always comes to its end.
class Scheduler {
 public:
  // The executor must outlive the scheduler, or at least stop(), and be made with
  // max_rows >= prefill_chunk + max_logit_rows and max_logit_rows >= max_sequences; what that is
  // more is room for guesses: by `drafter`, or by lookup where a task asks for it or it is null and
  // the options say so.
  Scheduler(Executor& executor, const SchedulerOptions& options,
            std::unique_ptr<Drafter> drafter = nullptr);
  ~Scheduler();

  void submit(std::shared_ptr<Task> task);

  // Cancels every task submitted so far.
  void cancel_all();

  SchedulerStatus status() const;

  // Forgets cached pages that no task uses; returns when it is done.
  void forget_unused();

  // Cancels everything and ends the thread. Tasks submitted later fail with Error(cancelled).
  void stop();

 private:
  struct Entry {
    std::shared_ptr<Task> task;
    std::uint64_t number = 0;  // in order of submission
    bool started = false;
    KvCache::Sequence cache;
    std::uint32_t rows = 0;        // in the coming forward pass, of tokens that the task has
    std::vector<TokenId> guesses;  // of those after them, a row each
    bool wants_logits = false;     // the backend could not choose its next token
  };

  void work();
  bool take_in();
  void drop_cancelled();
  void admit();
  void plan();
  void share_prefill();
  void guess();
  void secure_pages();
  void run_hidden();
  void run(std::span<Entry* const> entries);
  std::uint32_t plan_choices(std::span<Entry* const> entries);
  void choose(std::span<Entry* const> entries, std::uint32_t steps);
  void take(Entry& entry, std::size_t row, std::uint32_t steps);
  void run_each_alone(std::span<Entry* const> entries);
  void deliver(Entry& entry, std::span<float> logits);
  void follow(Entry& entry, Task::Step step);
  void release(Entry& entry);
  void retire(Entry& entry);
  void fail(Entry& entry, const std::exception_ptr& error);
  void postpone(std::size_t index);

  Executor& executor_;
  SchedulerOptions options_;
  KvCache cache_;

  // The thread's own.
  std::deque<Entry> waiting_;    // by number
  std::vector<Entry> running_;   // by number; an entry without a task has ended
  std::vector<Entry*> planned_;  // entries of running_ that have rows
  std::optional<Speculator> speculator_;
  std::vector<DraftRequest> draft_requests_;
  std::vector<TokenId> tokens_;
  std::vector<SequenceSlice> slices_;
  std::vector<std::uint32_t> logit_rows_;
  std::vector<float> logits_;  // [max_logit_rows, vocab_size]
  std::vector<TokenChoice> choices_;
  std::vector<TokenId> chosen_;  // [steps, rows that want a token]
  BurstLength burst_;
  ChunkLength chunk_;
  std::vector<float> hidden_;  // [max_rows, dim], once it is needed

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::vector<Entry> inbox_;
  std::vector<std::promise<void>> forget_requests_;
  std::uint64_t submitted_ = 0;
  std::uint64_t cancelled_up_to_ = 0;  // tasks with a number up to this are to be cancelled
  bool stopping_ = false;
  SchedulerStatus status_;

  std::uint64_t cancel_seen_ = 0;  // the thread's copy of cancelled_up_to_
  std::thread thread_;
};

}  // namespace edgerunner
