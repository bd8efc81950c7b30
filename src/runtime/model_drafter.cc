#include "runtime/model_drafter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "edgerunner/error.h"
#include "runtime/logprobs.h"

namespace edgerunner {
namespace {

// The options without what concerns tokens that the draft model has not.
SamplingOptions within(SamplingOptions options, std::uint32_t vocab_size) {
  std::erase_if(options.logit_bias, [vocab_size](const auto& bias) {
    return static_cast<std::uint32_t>(bias.first) >= vocab_size;
  });
  return options;
}

}  // namespace

ModelDrafter::ModelDrafter(std::unique_ptr<DraftModel> model, std::uint32_t vocab_size,
                           double confidence)
    : model_(std::move(model)),
      vocab_size_(std::min(vocab_size, model_->decoder.spec.vocab_size)),
      confidence_(confidence),
      cache_(*model_->executor, model_->decoder.spec.common_window()),
      logits_(std::size_t{model_->executor->options().max_logit_rows} *
              model_->decoder.spec.vocab_size) {}

void ModelDrafter::forget(std::uint64_t sequence) {
  const auto place = places_.find(sequence);
  if (place == places_.end()) return;
  cache_.release(place->second.cache);
  places_.erase(place);
}

void ModelDrafter::draft(std::span<const DraftRequest> requests) {
  active_.clear();
  std::uint32_t room = model_->executor->options().max_rows;
  for (const DraftRequest& request : requests) take_part(request, room);
  while (!active_.empty()) {
    run();
    std::erase_if(active_, [](const Active& active) {
      return active.request->guesses->size() == active.wanted;
    });
  }
}

// Gives the sequence its rows of the first pass: the tokens that are new to the draft model. A long
// prompt takes several calls; until it is computed there is nothing to guess by.
void ModelDrafter::take_part(const DraftRequest& request, std::uint32_t& room) {
  const auto size = static_cast<std::uint32_t>(request.tokens.size());
  const ExecutorOptions& limits = model_->executor->options();
  if (request.most == 0 || size > limits.max_context || room == 0) return;
  if (active_.size() == limits.max_logit_rows) return;
  Place& place = place_of(request);
  confirm(place, request.tokens);
  const std::uint32_t lacking = size - place.cache.length();
  const std::uint32_t rows = std::min(lacking, room);
  // The last guess need not be computed.
  const std::uint32_t most = std::min(request.most, limits.max_context - size + 1);
  const std::uint32_t wanted = rows < lacking ? 0 : most;
  if (!cache_.reserve(place.cache, rows + std::max(wanted, 1U) - 1)) return;
  room -= rows;
  active_.push_back(
      {&request, &place, rows, wanted, {request.tokens.begin(), request.tokens.end()}});
}

ModelDrafter::Place& ModelDrafter::place_of(const DraftRequest& request) {
  const auto [entry, is_new] = places_.try_emplace(request.sequence);
  Place& place = entry->second;
  if (is_new) {
    cache_.acquire(place.cache, request.tokens);
    place.sampler.emplace(within(*request.sampling, vocab_size_), vocab_size_);
  }
  return place;
}

// Keeps what was computed of guesses that were right. The last token is left to compute, for its
// logits.
void ModelDrafter::confirm(Place& place, std::span<const TokenId> tokens) {
  const auto coming =
      tokens.subspan(place.cache.length()).first(tokens.size() - 1 - place.cache.length());
  const auto differ =
      std::mismatch(coming.begin(), coming.end(), place.ahead.begin(), place.ahead.end());
  cache_.commit(place.cache, {coming.begin(), differ.first});
  place.ahead.clear();
}

// One forward pass: new tokens of a sequence, or its last guess.
void ModelDrafter::run() {
  tokens_.clear();
  slices_.clear();
  logit_rows_.clear();
  for (const Active& active : active_) {
    const Place& place = *active.place;
    const std::uint32_t start =
        place.cache.length() + static_cast<std::uint32_t>(place.ahead.size());
    const auto rows = std::span(active.tokens).subspan(start, active.rows);
    tokens_.insert(tokens_.end(), rows.begin(), rows.end());
    slices_.push_back({.rows = active.rows, .start = start, .pages = place.cache.pages()});
    logit_rows_.push_back(static_cast<std::uint32_t>(tokens_.size() - 1));
  }
  const std::size_t width = model_->decoder.spec.vocab_size;
  const std::span<float> logits = std::span(logits_).first(logit_rows_.size() * width);
  model_->executor->forward({.tokens = tokens_, .sequences = slices_, .logit_rows = logit_rows_},
                            logits);
  for (std::size_t i = 0; i < active_.size(); ++i) {
    Active& active = active_[i];
    Place& place = *active.place;
    const std::size_t start = place.cache.length() + place.ahead.size();
    const auto computed = std::span(active.tokens).subspan(start, active.rows);
    if (active.request->guesses->empty()) {
      cache_.commit(place.cache, computed);
    } else {
      place.ahead.push_back(computed.front());
    }
    active.rows = 1;
    if (active.wanted > 0) guess(active, logits.subspan(i * width, vocab_size_));
  }
}

// A guess, unless it makes all of them together too unlikely: the passes that it and those after it
// would take are worth more than they are.
void ModelDrafter::guess(Active& active, std::span<float> logits) {
  const DraftRequest& request = *active.request;
  std::vector<TokenId>& guesses = *request.guesses;
  if (confidence_ > 0) unchanged_.assign(logits.begin(), logits.end());
  try {
    const TokenId token =
        active.place->sampler->sample(logits, active.tokens, request.index + guesses.size());
    if (confidence_ > 0) {
      active.chance *= std::exp(unchanged_[token] - log_sum_exp(unchanged_));
      if (active.chance < confidence_) {
        active.wanted = static_cast<std::uint32_t>(guesses.size());
        return;
      }
    }
    guesses.push_back(token);
    active.tokens.push_back(token);
  } catch (const Error&) {
    // Logits that are not finite, or every token banned: no guess, which is no harm.
    active.wanted = static_cast<std::uint32_t>(guesses.size());
  }
}

}  // namespace edgerunner
