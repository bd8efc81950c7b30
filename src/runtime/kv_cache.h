#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "backend/executor.h"
#include "edgerunner/types.h"

namespace edgerunner {

// Which pages of an executor's KV cache hold what. A sequence is a page table; a page knows the
// tokens that it holds and the page before it, so that the pages form a tree of prefixes.
// - A full page never changes again. It is found by the chained hash of its tokens and all tokens
//   before it, verified token by token, and shared by reference.
// - A page that is partly filled is written by one sequence. Another that shares its beginning gets
//   a copy (executor.copy_page), or the page itself if nobody uses it any more.
// - A page that no sequence uses stays until its room is needed; the one unused for longest goes
//   first.
// - With a sliding window, a sequence lets go of the pages that the window has passed.
// - Sequences with different adapters share nothing, whatever their tokens: each set of adapters
//   has a tree of its own.
// For one thread.
class KvCache {
 public:
  // `window`: of all layers (DecoderSpec::common_window()), or 0.
  KvCache(Executor& executor, std::uint32_t window);

  // A sequence's place in the cache. It begins empty and must be released by its cache.
  class Sequence {
   public:
    Sequence() = default;
    // With the adapters of a set: AdapterSet::id; 0: none.
    explicit Sequence(std::uint64_t adapters) : root_(root_of(adapters)), parent_(root_) {}

    std::uint32_t length() const { return length_; }  // tokens computed
    std::span<const PageId> pages() const { return pages_; }

   private:
    friend class KvCache;
    // What stands for the content before the first page: no page's content is as large.
    static constexpr std::uint64_t root_of(std::uint64_t adapters) {
      return adapters == 0 ? 0 : (std::uint64_t{1} << 63) | adapters;
    }

    std::vector<PageId> pages_;  // kNoPage where the window has passed
    std::uint64_t root_ = 0;
    std::uint32_t length_ = 0;
    std::uint32_t passed_ = 0;        // leading entries of pages_ that are kNoPage
    std::uint64_t parent_ = 0;        // content of the last full page, or root_
    std::uint64_t hash_ = kRootHash;  // and its chained hash
  };

  // Fills an empty sequence with the longest cached prefix of `tokens` that leaves at least the
  // last one to compute; returns its length.
  std::uint32_t acquire(Sequence& sequence, std::span<const TokenId> tokens);

  // Whether pages for all of `tokens` and the next can be had without taking one from a sequence,
  // for an empty sequence.
  bool fits(const Sequence& sequence, std::span<const TokenId> tokens) const;

  // Gets the pages for the next `rows` tokens. False if there are none left: what was got stays.
  bool reserve(Sequence& sequence, std::uint32_t rows);

  // Says that `tokens`, which follow the sequence's, have been computed into its reserved pages.
  void commit(Sequence& sequence, std::span<const TokenId> tokens);

  // Empties a sequence, which keeps its adapters; what it computed stays cached.
  void release(Sequence& sequence);

  // Forgets every page that no sequence uses.
  void forget_unused();

  std::uint32_t cached_pages() const;                           // that hold anything
  std::uint32_t unused_pages() const { return unreferenced_; }  // of these, used by no sequence
  std::uint32_t used_pages() const {
    return static_cast<std::uint32_t>(pages_.size() - free_.size()) - unreferenced_;
  }

 private:
  static constexpr std::uint64_t kRootHash = 0x45646765;

  struct Page {
    std::uint64_t content = 0;  // names what the page holds, never given twice; 0: holds nothing
    std::uint64_t parent = 0;   // content of the page before it, or the root of its tree
    std::uint64_t hash = 0;     // chained, once the page is full
    std::uint64_t last_used = 0;
    std::uint32_t depth = 0;  // pages before it
    std::uint32_t references = 0;
    std::vector<TokenId> tokens;
  };

  struct Match {
    PageId page = kNoPage;
    std::uint32_t tokens = 0;
  };

  PageId find_full(std::uint64_t parent, std::uint64_t hash, std::span<const TokenId> tokens) const;
  Match find_partial(std::uint64_t parent, std::span<const TokenId> tokens) const;
  void attach_partial(Sequence& sequence, std::span<const TokenId> rest);
  void attach_full(Sequence& sequence, PageId page);
  PageId allocate();
  void begin(PageId page, const Sequence& sequence);
  void complete(Sequence& sequence);
  void reference(PageId page);
  void unreference(PageId page);
  void forget(PageId page);
  std::uint32_t page_index(const Sequence& sequence) const {
    return sequence.length_ / kPageTokens;
  }

  Executor& executor_;
  std::uint32_t window_;
  std::vector<Page> pages_;
  std::vector<PageId> free_;
  std::uint32_t unreferenced_ = 0;  // pages that hold something and that no sequence uses
  std::uint64_t last_content_ = 0;
  std::uint64_t clock_ = 0;
  std::unordered_multimap<std::uint64_t, PageId> full_;      // by chained hash
  std::unordered_multimap<std::uint64_t, PageId> children_;  // by the parent's content
};

}  // namespace edgerunner
