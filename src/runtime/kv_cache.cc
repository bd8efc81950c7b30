#include "runtime/kv_cache.h"

#include <algorithm>
#include <tuple>

#include "base/random.h"

namespace edgerunner {
namespace {

std::uint64_t chained_hash(std::uint64_t before, std::span<const TokenId> tokens) {
  std::uint64_t hash = before;
  for (const TokenId token : tokens) hash = mix64(hash + static_cast<std::uint32_t>(token) + 1);
  return hash;
}

}  // namespace

KvCache::KvCache(Executor& executor, std::uint32_t window)
    : executor_(executor), window_(window), pages_(executor.options().pages) {
  for (Page& page : pages_) page.tokens.reserve(kPageTokens);
  for (auto page = static_cast<PageId>(pages_.size()); page > 0; --page) free_.push_back(page - 1);
}

std::uint32_t KvCache::acquire(Sequence& sequence, std::span<const TokenId> tokens) {
  ++clock_;
  std::span<const TokenId> rest = tokens.first(tokens.size() - 1);
  while (rest.size() >= kPageTokens) {
    const auto wanted = rest.first(kPageTokens);
    const PageId page = find_full(sequence.parent_, chained_hash(sequence.hash_, wanted), wanted);
    if (page == kNoPage) break;
    attach_full(sequence, page);
    rest = rest.subspan(kPageTokens);
  }
  if (!rest.empty()) attach_partial(sequence, rest);
  return sequence.length_;
}

void KvCache::attach_full(Sequence& sequence, PageId page) {
  reference(page);
  sequence.pages_.push_back(page);
  sequence.length_ += kPageTokens;
  sequence.parent_ = pages_[page].content;
  sequence.hash_ = pages_[page].hash;
}

void KvCache::attach_partial(Sequence& sequence, std::span<const TokenId> rest) {
  const Match match = find_partial(sequence.parent_, rest);
  if (match.tokens == 0) return;
  Page& source = pages_[match.page];
  const bool whole = match.tokens == source.tokens.size() && match.tokens < kPageTokens;
  reference(match.page);  // so that allocate() doesn't take it
  if (whole && source.references == 1) {
    sequence.pages_.push_back(match.page);
    sequence.length_ += match.tokens;
    return;
  }
  const PageId copy = allocate();
  unreference(match.page);
  if (copy == kNoPage) return;
  sequence.pages_.push_back(copy);
  executor_.copy_page(match.page, copy, match.tokens);
  begin(copy, sequence);
  pages_[copy].tokens.assign(source.tokens.begin(), source.tokens.begin() + match.tokens);
  sequence.length_ += match.tokens;
}

bool KvCache::fits(const Sequence& sequence, std::span<const TokenId> tokens) const {
  std::uint32_t needed = pages_for(tokens.size() + 1);
  std::uint32_t available = unreferenced_ + static_cast<std::uint32_t>(free_.size());
  std::uint64_t parent = sequence.root_;
  std::uint64_t hash = kRootHash;
  std::span<const TokenId> rest = tokens.first(tokens.size() - 1);
  while (rest.size() >= kPageTokens) {
    const auto wanted = rest.first(kPageTokens);
    hash = chained_hash(hash, wanted);
    const PageId page = find_full(parent, hash, wanted);
    if (page == kNoPage) break;
    --needed;
    if (pages_[page].references == 0) --available;
    parent = pages_[page].content;
    rest = rest.subspan(kPageTokens);
  }
  if (window_ > 0) {
    // More than the window and a batch's rows a sequence never holds at once, and one page at
    // either end that they only touch.
    needed = std::min(needed, pages_for(window_ + executor_.options().max_rows) + 2);
  }
  return needed <= available;
}

bool KvCache::reserve(Sequence& sequence, std::uint32_t rows) {
  if (window_ > 0 && sequence.length_ + 1 > window_) {
    const std::uint32_t first_seen = sequence.length_ + 1 - window_;
    const std::uint32_t passed =
        std::min(first_seen / kPageTokens, static_cast<std::uint32_t>(sequence.pages_.size()));
    if (passed > sequence.passed_) ++clock_;
    for (; sequence.passed_ < passed; ++sequence.passed_) {
      unreference(sequence.pages_[sequence.passed_]);
      sequence.pages_[sequence.passed_] = kNoPage;
    }
  }
  const std::uint32_t wanted = pages_for(sequence.length_ + std::size_t{rows});
  while (sequence.pages_.size() < wanted) {
    const PageId page = allocate();
    if (page == kNoPage) return false;
    sequence.pages_.push_back(page);
  }
  return true;
}

void KvCache::commit(Sequence& sequence, std::span<const TokenId> tokens) {
  while (!tokens.empty()) {
    const PageId id = sequence.pages_[page_index(sequence)];
    Page& page = pages_[id];
    if (page.content == 0) begin(id, sequence);
    const auto count = std::min<std::size_t>(tokens.size(), kPageTokens - page.tokens.size());
    page.tokens.insert(page.tokens.end(), tokens.begin(), tokens.begin() + count);
    if (page.tokens.size() == kPageTokens) complete(sequence);
    sequence.length_ += static_cast<std::uint32_t>(count);
    tokens = tokens.subspan(count);
  }
}

// The sequence's current page has become full: from now on it may be found and shared. If there is
// one that holds the same already, the sequence goes on with that.
void KvCache::complete(Sequence& sequence) {
  PageId& id = sequence.pages_[page_index(sequence)];
  const std::uint64_t hash = chained_hash(sequence.hash_, pages_[id].tokens);
  const PageId same = find_full(sequence.parent_, hash, pages_[id].tokens);
  if (same != kNoPage) {
    reference(same);
    unreference(id);
    forget(id);
    id = same;
  } else {
    pages_[id].hash = hash;
    full_.emplace(hash, id);
  }
  sequence.parent_ = pages_[id].content;
  sequence.hash_ = hash;
}

void KvCache::release(Sequence& sequence) {
  ++clock_;
  for (const PageId page : sequence.pages_) {
    if (page != kNoPage) unreference(page);
  }
  const std::uint64_t root = sequence.root_;
  sequence = Sequence();
  sequence.root_ = sequence.parent_ = root;
}

void KvCache::forget_unused() {
  for (PageId page = 0; page < pages_.size(); ++page) {
    if (pages_[page].content != 0 && pages_[page].references == 0) forget(page);
  }
}

std::uint32_t KvCache::cached_pages() const {
  return static_cast<std::uint32_t>(
      std::count_if(pages_.begin(), pages_.end(), [](const Page& p) { return p.content != 0; }));
}

PageId KvCache::find_full(std::uint64_t parent, std::uint64_t hash,
                          std::span<const TokenId> tokens) const {
  const auto [first, last] = full_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const Page& page = pages_[it->second];
    // The parent's name stands for all tokens before, which were verified when it was found.
    if (page.parent == parent &&
        std::equal(tokens.begin(), tokens.end(), page.tokens.begin(), page.tokens.end())) {
      return it->second;
    }
  }
  return kNoPage;
}

// The page after `parent` that shares most tokens with `tokens`; of equals, one that could be taken
// over without a copy.
KvCache::Match KvCache::find_partial(std::uint64_t parent, std::span<const TokenId> tokens) const {
  Match best;
  bool best_whole = false;
  const auto [first, last] = children_.equal_range(parent);
  for (auto it = first; it != last; ++it) {
    const Page& page = pages_[it->second];
    const auto differ =
        std::mismatch(tokens.begin(), tokens.end(), page.tokens.begin(), page.tokens.end());
    const auto shared = static_cast<std::uint32_t>(differ.first - tokens.begin());
    const bool whole = page.references == 0 && shared == page.tokens.size();
    if (std::tie(shared, whole) > std::tie(best.tokens, best_whole)) {
      best = {.page = it->second, .tokens = shared};
      best_whole = whole;
    }
  }
  return best;
}

// An empty page, referenced once; kNoPage where every page is in use.
PageId KvCache::allocate() {
  if (free_.empty() && unreferenced_ > 0) {
    // A page is of no use without those before it: of a sequence released at once, the last goes
    // first.
    PageId victim = kNoPage;
    for (PageId id = 0; id < pages_.size(); ++id) {
      const Page& page = pages_[id];
      if (page.content == 0 || page.references > 0) continue;
      if (victim == kNoPage || page.last_used < pages_[victim].last_used ||
          (page.last_used == pages_[victim].last_used && page.depth > pages_[victim].depth)) {
        victim = id;
      }
    }
    forget(victim);
  }
  if (free_.empty()) return kNoPage;
  const PageId page = free_.back();
  free_.pop_back();
  pages_[page].references = 1;
  return page;
}

// The page takes its place in the tree, after the sequence's full pages.
void KvCache::begin(PageId id, const Sequence& sequence) {
  Page& page = pages_[id];
  page.content = ++last_content_;
  page.parent = sequence.parent_;
  page.depth = page_index(sequence);
  children_.emplace(page.parent, id);
}

void KvCache::reference(PageId page) {
  if (pages_[page].references == 0) --unreferenced_;
  ++pages_[page].references;
}

void KvCache::unreference(PageId id) {
  Page& page = pages_[id];
  if (--page.references > 0) return;
  if (page.content == 0) {  // reserved, never written
    free_.push_back(id);
    return;
  }
  ++unreferenced_;
  page.last_used = clock_;
}

// Takes an unused page out of the tree. Its children, if any are left, can't be found any more.
void KvCache::forget(PageId id) {
  Page& page = pages_[id];
  const auto erase = [id](auto& index, std::uint64_t key) {
    const auto [first, last] = index.equal_range(key);
    for (auto it = first; it != last; ++it) {
      if (it->second == id) {
        index.erase(it);
        return;
      }
    }
  };
  erase(children_, page.parent);
  if (page.tokens.size() == kPageTokens) erase(full_, page.hash);
  page.tokens.clear();
  page.content = page.parent = page.hash = 0;
  --unreferenced_;
  free_.push_back(id);
}

}  // namespace edgerunner
