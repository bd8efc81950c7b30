#include "runtime/scheduler.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "edgerunner/error.h"

namespace edgerunner {

Scheduler::Scheduler(Executor& executor, const SchedulerOptions& options,
                     std::unique_ptr<Drafter> drafter)
    : executor_(executor),
      options_(options),
      cache_(executor, options.window),
      logits_(std::size_t{executor.options().max_logit_rows} * options.vocab_size),
      burst_(options.longest_burst),
      chunk_(options.longest_step) {
  const std::uint32_t logit_rows = executor.options().max_logit_rows;
  if (logit_rows > options.max_sequences) {
    speculator_.emplace(std::move(drafter),
                        SpeculatorOptions{.most = options.draft_tokens,
                                          .most_rows = logit_rows - options.max_sequences,
                                          .adaptive = options.adaptive_drafts,
                                          .lookup = options.lookup});
  }
  running_.reserve(options.max_sequences);
  thread_ = std::thread(&Scheduler::work, this);
}

Scheduler::~Scheduler() { stop(); }

void Scheduler::submit(std::shared_ptr<Task> task) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) {
      const AdapterSet* const adapters = task->adapters();
      inbox_.push_back({.task = std::move(task),
                        .number = ++submitted_,
                        .cache = KvCache::Sequence(adapters == nullptr ? 0 : adapters->id)});
      wake_.notify_one();
      return;
    }
  }
  task->fail(std::make_exception_ptr(
      Error(ErrorCode::cancelled, "the model has been destroyed; load it again to use it")));
}

void Scheduler::cancel_all() {
  const std::lock_guard lock(mutex_);
  cancelled_up_to_ = submitted_;
}

SchedulerStatus Scheduler::status() const {
  const std::lock_guard lock(mutex_);
  SchedulerStatus status = status_;
  status.waiting += static_cast<std::uint32_t>(inbox_.size());
  return status;
}

void Scheduler::forget_unused() {
  std::future<void> done;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    done = forget_requests_.emplace_back().get_future();
    wake_.notify_one();
  }
  done.wait();
}

void Scheduler::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    cancelled_up_to_ = submitted_;
    wake_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void Scheduler::work() {
  while (take_in()) {
    drop_cancelled();
    admit();
    plan();
    run_hidden();
    if (!planned_.empty()) run(planned_);
    std::erase_if(running_, [](const Entry& entry) { return entry.task == nullptr; });
  }
  drop_cancelled();
}

// Takes what others have asked for, and sleeps while there is nothing to do. False: time to stop.
bool Scheduler::take_in() {
  std::vector<std::promise<void>> forget_requests;
  bool go_on = true;
  {
    std::unique_lock lock(mutex_);
    status_.running = static_cast<std::uint32_t>(running_.size());
    status_.waiting = static_cast<std::uint32_t>(waiting_.size());
    status_.pages = executor_.options().pages;
    status_.used_pages = cache_.used_pages();
    status_.cached_pages = cache_.unused_pages();
    wake_.wait(lock, [this] {
      return stopping_ || !inbox_.empty() || !forget_requests_.empty() || !waiting_.empty() ||
             !running_.empty();
    });
    std::move(inbox_.begin(), inbox_.end(), std::back_inserter(waiting_));
    inbox_.clear();
    forget_requests.swap(forget_requests_);
    cancel_seen_ = cancelled_up_to_;
    go_on = !stopping_;
  }
  if (!forget_requests.empty()) cache_.forget_unused();
  for (std::promise<void>& request : forget_requests) request.set_value();
  return go_on;
}

void Scheduler::drop_cancelled() {
  const auto drop = [this](Entry& entry) {
    if (entry.number > cancel_seen_ && !entry.task->cancelled()) return false;
    const std::shared_ptr<Task> task = std::move(entry.task);
    release(entry);
    task->cancel();
    return true;
  };
  std::erase_if(waiting_, drop);
  std::erase_if(running_, drop);
}

void Scheduler::admit() {
  while (!waiting_.empty() && running_.size() < options_.max_sequences) {
    Entry& next = waiting_.front();
    if (!running_.empty() && !cache_.fits(next.cache, next.task->tokens())) return;
    Entry entry = std::move(next);
    waiting_.pop_front();
    try {
      const std::uint32_t reused =
          entry.task->wants_hidden() ? 0 : cache_.acquire(entry.cache, entry.task->tokens());
      if (!std::exchange(entry.started, true)) entry.task->start(reused);
    } catch (...) {
      fail(entry, std::current_exception());
      continue;
    }
    const auto place = std::find_if(running_.begin(), running_.end(), [&entry](const Entry& other) {
      return other.number > entry.number;
    });
    running_.insert(place, std::move(entry));
  }
}

// Decides how many rows each sequence gets, and gets their pages. Guesses that find none are
// dropped.
void Scheduler::plan() {
  share_prefill();
  guess();
  secure_pages();
  planned_.clear();
  for (Entry& entry : running_) {
    const auto guesses = static_cast<std::uint32_t>(entry.guesses.size());
    if (guesses > 0 && !cache_.reserve(entry.cache, entry.rows + guesses)) entry.guesses.clear();
    if (entry.rows > 0) planned_.push_back(&entry);
  }
}

// A sequence that lacks one token gets its row. The others share the chunk evenly; what a short one
// leaves goes to the longer ones.
void Scheduler::share_prefill() {
  std::vector<Entry*>& prompts = planned_;
  prompts.clear();
  for (Entry& entry : running_) {
    entry.rows = static_cast<std::uint32_t>(entry.task->tokens().size()) - entry.cache.length();
    if (entry.rows > 1) prompts.push_back(&entry);
  }
  std::stable_sort(prompts.begin(), prompts.end(),
                   [](const Entry* a, const Entry* b) { return a->rows < b->rows; });
  std::uint32_t left = chunk_.next(options_.prefill_chunk);
  auto sharers = static_cast<std::uint32_t>(prompts.size());
  for (Entry* entry : prompts) {
    const std::uint32_t share = (left + sharers - 1) / sharers;
    entry->rows = std::min(entry->rows, share);
    left -= entry->rows;
    --sharers;
  }
}

// Guesses for the sequences that decode.
void Scheduler::guess() {
  if (!speculator_) return;
  draft_requests_.clear();
  std::uint32_t decoding = 0;
  for (Entry& entry : running_) {
    entry.guesses.clear();
    const auto tokens = entry.task->tokens();
    if (entry.rows != 1 || entry.cache.length() + 1 < tokens.size()) continue;
    ++decoding;
    const std::optional<Task::Wish> outlook = entry.task->outlook();
    if (!outlook || outlook->guessing == Guessing::off) continue;
    const std::uint32_t bound = outlook->most_guesses > 0 ? outlook->most_guesses : outlook->most;
    // The last token that it takes comes without a row of its own.
    if (outlook->most < 2) continue;
    draft_requests_.push_back({.sequence = entry.number,
                               .tokens = tokens,
                               .sampling = outlook->sampling,
                               .index = outlook->index,
                               .most = std::min(outlook->most - 1, bound),
                               .guessing = outlook->guessing,
                               .guesses = &entry.guesses});
  }
  try {
    speculator_->draft(draft_requests_, decoding);
  } catch (...) {
    // The texts are the same without guesses.
    for (Entry& entry : running_) entry.guesses.clear();
    speculator_.reset();
  }
}

// Pages for all rows, the oldest sequence's first. Where there are none left, the youngest gives
// its pages up, be it the one that asks.
void Scheduler::secure_pages() {
  for (std::size_t i = 0; i < running_.size(); ++i) {
    while (!cache_.reserve(running_[i].cache, running_[i].rows)) {
      const std::size_t youngest = running_.size() - 1;
      if (youngest == 0) {
        fail(running_[0], std::make_exception_ptr(Error(
                              ErrorCode::context_full,
                              "the KV cache has too few pages for this sequence; load the model "
                              "with a longer context")));
        running_.clear();
        return;
      }
      postpone(youngest);
      if (youngest == i) return;
    }
  }
}

void Scheduler::postpone(std::size_t index) {
  Entry entry = std::move(running_[index]);
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(index));
  release(entry);
  const auto place = std::find_if(waiting_.begin(), waiting_.end(), [&entry](const Entry& other) {
    return other.number > entry.number;
  });
  waiting_.insert(place, std::move(entry));
}

// Lists how the rows that end a sequence want their tokens chosen; returns how many tokens the
// backend shall choose at once, and gets the pages for them. 0: the rows' logits are wanted.
std::uint32_t Scheduler::plan_choices(std::span<Entry* const> entries) {
  TokenChooser* const chooser = executor_.chooser();
  if (chooser == nullptr) return 0;
  choices_.clear();
  bool decoding = true;
  std::uint32_t most = chooser->most_steps();
  for (const Entry* entry : entries) {
    const auto all = entry->task->tokens();
    decoding = decoding && entry->rows == 1;
    if (entry->cache.length() + entry->rows < all.size()) {
      decoding = false;
      continue;
    }
    const std::optional<Task::Wish> wish = entry->task->wish();
    if (!entry->guesses.empty()) return 0;
    if (!wish || entry->wants_logits || !chooser->can_choose(*wish->sampling)) return 0;
    choices_.push_back({wish->sampling, all, wish->index});
    most = std::min(most, wish->most);
  }
  if (choices_.empty()) return 0;
  const std::uint32_t steps = decoding ? burst_.next(most) : 1;
  for (Entry* entry : entries) {
    if (steps > 1 && !cache_.reserve(entry->cache, steps)) return 1;
  }
  return steps;
}

// Runs the planned sequences that want hidden states, each in a pass of its own, and takes them
// from the plan.
void Scheduler::run_hidden() {
  const auto hidden = [this](Entry* entry) {
    Task& task = *entry->task;
    if (!task.wants_hidden()) return false;
    try {
      hidden_.resize(std::size_t{executor_.options().max_rows} * options_.dim);
      const std::uint32_t first = entry->cache.length();
      const auto rows = task.tokens().subspan(first, entry->rows);
      const SequenceSlice slice{entry->rows, first, entry->cache.pages(), task.adapters()};
      const std::span<float> states = std::span(hidden_).first(rows.size() * options_.dim);
      executor_.embed({.tokens = rows, .sequences = {&slice, 1}, .logit_rows = {}}, states);
      cache_.commit(entry->cache, rows);
      follow(*entry, task.take_hidden(first, entry->rows, states));
    } catch (...) {
      fail(*entry, std::current_exception());
    }
    return true;
  };
  std::erase_if(planned_, hidden);
}

void Scheduler::run(std::span<Entry* const> entries) {
  const auto begin = std::chrono::steady_clock::now();
  const std::uint32_t steps = plan_choices(entries);
  tokens_.clear();
  slices_.clear();
  logit_rows_.clear();
  bool decoding = true;
  for (const Entry* entry : entries) {
    const auto all = entry->task->tokens();
    const std::uint32_t start = entry->cache.length();
    const auto rows = all.subspan(start, entry->rows);
    const auto guesses = static_cast<std::uint32_t>(entry->guesses.size());
    tokens_.insert(tokens_.end(), rows.begin(), rows.end());
    tokens_.insert(tokens_.end(), entry->guesses.begin(), entry->guesses.end());
    slices_.push_back({.rows = entry->rows + guesses,
                       .start = start,
                       .pages = entry->cache.pages(),
                       .adapters = entry->task->adapters()});
    decoding = decoding && entry->rows == 1;
    if (start + entry->rows < all.size()) continue;
    for (auto row = static_cast<std::uint32_t>(tokens_.size() - 1 - guesses); row < tokens_.size();
         ++row) {
      logit_rows_.push_back(row);
    }
  }
  const std::span<float> logits =
      std::span(logits_).first(logit_rows_.size() * options_.vocab_size);
  const Batch batch{.tokens = tokens_, .sequences = slices_, .logit_rows = logit_rows_};
  try {
    if (steps > 0) {
      chosen_.resize(std::size_t{steps} * choices_.size());
      executor_.chooser()->choose(batch, choices_, steps, chosen_);
      if (decoding) burst_.took(steps, std::chrono::steady_clock::now() - begin);
    } else {
      executor_.forward(batch, logits);
    }
    const auto time = std::chrono::steady_clock::now() - begin;
    const auto rows = static_cast<std::uint32_t>(tokens_.size());
    if (speculator_ && decoding) {
      const auto sequences = static_cast<std::uint32_t>(entries.size());
      speculator_->took(sequences, rows - sequences, time);
    } else {
      chunk_.took(rows, time);
    }
  } catch (...) {
    if (entries.size() == 1) {
      fail(*entries[0], std::current_exception());
    } else {
      run_each_alone(entries);
    }
    return;
  }
  std::size_t row = 0;
  for (Entry* entry : entries) {
    const auto all = entry->task->tokens();
    const auto computed = all.subspan(entry->cache.length(), entry->rows);
    if (steps > 0 && entry->cache.length() + entry->rows == all.size()) {
      cache_.commit(entry->cache, computed.first(computed.size() - 1));
      take(*entry, row++, steps);
      continue;
    }
    cache_.commit(entry->cache, computed);
    if (entry->cache.length() < all.size()) continue;
    entry->wants_logits = false;
    const std::size_t rows = 1 + entry->guesses.size();
    deliver(*entry, logits.subspan(row * options_.vocab_size, rows * options_.vocab_size));
    row += rows;
  }
}

// Finds out whose rows made a forward pass fail, so that only that sequence ends.
void Scheduler::run_each_alone(std::span<Entry* const> entries) {
  for (Entry* const entry : entries) run(std::span(&entry, 1));
}

// Hands over the tokens chosen for a row as long as the task goes on. The keys and values of those
// that it doesn't want are never committed: the next forward pass writes over them.
void Scheduler::take(Entry& entry, std::size_t row, std::uint32_t steps) {
  for (std::uint32_t step = 0; step < steps; ++step) {
    const TokenId token = chosen_[step * choices_.size() + row];
    if (token == kNoToken) {
      entry.wants_logits = true;  // of the last token, which is computed again
      return;
    }
    Task::Step next = Task::Step::done;
    try {
      cache_.commit(entry.cache, entry.task->tokens().last(1));
      next = entry.task->take(token);
      follow(entry, next);
    } catch (...) {
      fail(entry, std::current_exception());
      return;
    }
    if (next != Task::Step::append) return;
  }
}

// Hands over logits, those after guesses as long as the task goes on with the tokens that were
// guessed.
void Scheduler::deliver(Entry& entry, std::span<float> logits) {
  const std::vector<TokenId>& guesses = entry.guesses;
  std::uint32_t right = 0;
  try {
    if (!guesses.empty()) entry.task->guessed(guesses);
    for (;;) {
      const Task::Step step =
          entry.task->advance(logits.subspan(right * options_.vocab_size, options_.vocab_size));
      const bool goes_on = step == Task::Step::append && right < guesses.size() &&
                           entry.task->tokens().back() == guesses[right];
      if (!goes_on) {
        if (!guesses.empty()) {
          speculator_->judged(entry.number, static_cast<std::uint32_t>(guesses.size()), right);
        }
        return follow(entry, step);
      }
      cache_.commit(entry.cache, std::span(guesses).subspan(right++, 1));
    }
  } catch (...) {
    fail(entry, std::current_exception());
  }
}

void Scheduler::follow(Entry& entry, Task::Step step) {
  if (step == Task::Step::restart) {
    release(entry);
    cache_.acquire(entry.cache, entry.task->tokens());
  } else if (step == Task::Step::done) {
    retire(entry);
  }
}

void Scheduler::release(Entry& entry) {
  cache_.release(entry.cache);
  if (speculator_) speculator_->forget(entry.number);
}

void Scheduler::retire(Entry& entry) {
  release(entry);
  entry.task.reset();
}

void Scheduler::fail(Entry& entry, const std::exception_ptr& error) {
  const std::shared_ptr<Task> task = std::move(entry.task);
  release(entry);
  task->fail(error);
}

}  // namespace edgerunner
