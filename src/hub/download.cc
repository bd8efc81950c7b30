#include "hub/download.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/mapped_file.h"
#include "edgerunner/error.h"
#include "gguf/parse.h"
#include "hub/http_get.h"
#include "hub/part_file.h"

namespace edgerunner::hub {
namespace {

constexpr std::string_view kMagic = "GGUF";

// By what a server can tell that it still has the same file; a weak ETag won't do (RFC
// 9110, 13.1.5).
std::string validator_of(const HttpHead& head) {
  if (!head.etag.empty() && !head.etag.starts_with("W/")) return head.etag;
  return head.last_modified;
}

std::string_view without_quotes(std::string_view etag) {
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') {
    etag = etag.substr(1, etag.size() - 2);
  }
  return etag;
}

// An answer that isn't what was asked for, where asking again may help.
struct Refused {
  std::string why;
};

bool may_pass(int status) {
  return status == 408 || status == 429 || status == 500 || (status >= 502 && status <= 504);
}

class Download {
 public:
  Download(const DownloadRequest& request, const DownloadOptions& options)
      : request_(request), options_(options), part_(PartFile::find(request.target)) {}

  DownloadedFile run() {
    for (bool again = false;; again = true) {
      fetch_all();
      const std::string sum = part_->finish();
      if (expected_.empty() || sum == expected_) return accept(sum);
      drop_part();
      // A beginning that was fetched at another time may be what is wrong.
      if (resumed_ && !again) continue;
      throw Error(ErrorCode::invalid_file,
                  fmt::format("{}: the SHA-256 is {} where {} was expected; nothing was kept",
                              request_.url, sum, expected_));
    }
  }

 private:
  void fetch_all() {
    int failures = 0;
    auto pause = options_.pause;
    while (true) {
      const std::uint64_t before = part_ ? part_->size() : 0;
      std::string problem = fetch();
      if (problem.empty()) problem = missing();
      if (problem.empty()) return;
      if (part_ && part_->size() > before) {
        failures = 0;
        pause = options_.pause;
      }
      if (++failures >= options_.tries) {
        throw Error(ErrorCode::io,
                    fmt::format("can't fetch {}: {}; the same command goes on from here",
                                request_.url, problem));
      }
      wait(pause);
      pause *= 2;
    }
  }

  // One request. Returns what went wrong and may pass, or an empty string.
  std::string fetch() {
    HttpRequest get;
    get.url = request_.url;
    get.bearer = request_.token;
    // Without a validator only a checksum can tell whether the beginning is of the same file.
    if (part_ && (!part_->validator().empty() || !request_.sha256.empty())) {
      get.from = part_->size();
      get.if_range = part_->validator();
    }
    whole_ = false;
    try {
      return http_get(get,
                      {.on_head = [&](const HttpHead& head) { begin(head, get.from); },
                       .on_body = [&](std::span<const std::byte> bytes) { take(bytes); }},
                      options_.stop);
    } catch (const Refused& refused) {
      return refused.why;
    }
  }

  void begin(const HttpHead& head, std::uint64_t from) {
    if (may_pass(head.status)) throw Refused{fmt::format("the server answers {}", head.status)};
    learn(head);
    if (head.status == 200) {
      total_ = head.content_length;
      resumed_ = false;
      part_.reset();  // lets go of its lock
      part_ = PartFile::create(request_.target, validator_of(head));
    } else if (head.status == 206 && from > 0 && head.range_start == from && is_same(head)) {
      total_ = head.range_total;
      resumed_ = true;
    } else if (head.status == 416 && from > 0 && head.range_total == from && is_same(head)) {
      total_ = from;
      whole_ = true;
      return;
    } else if (head.status == 206 || head.status == 416) {
      // Not the rest of what is here, whatever it is: the next request asks for all of it.
      drop_part();
      throw Refused{"the server answers with another part than was asked for"};
    } else {
      refuse(head.status);
    }
    if (linked_size_) total_ = linked_size_;
    require_room();
    report();
  }

  // What the hub states of a file that is stored elsewhere.
  void learn(const HttpHead& head) {
    linked_size_ = head.linked_size;
    expected_ = request_.sha256;
    if (!expected_.empty() || !request_.hub) return;
    const std::string_view etag =
        without_quotes(head.linked_etag.empty() ? head.etag : head.linked_etag);
    if (is_sha256(etag)) expected_ = etag;
  }

  bool is_same(const HttpHead& head) const {
    const std::string validator = validator_of(head);
    return validator.empty() || part_->validator().empty() || validator == part_->validator();
  }

  [[noreturn]] void refuse(int status) const {
    std::string_view advice = "; is the name right?";
    if (status == 401 || status == 403) {
      advice =
          !request_.hub ? "; it asks for a permission that the URL doesn't carry"
          : request_.token.empty()
              ? "; if the model exists, its terms may have to be accepted on its page: then set "
                "HF_TOKEN to a token of yours"
              : "; the token in HF_TOKEN doesn't give access to it (are its terms accepted on "
                "its page?)";
    }
    throw Error(ErrorCode::io, fmt::format("can't fetch {}: the server answers {}{}", request_.url,
                                           status, advice));
  }

  void require_room() const {
    if (!total_ || *total_ <= part_->size()) return;
    std::error_code error;
    const auto space = std::filesystem::space(request_.target.parent_path(), error);
    const std::uint64_t need = *total_ - part_->size();
    if (!error && space.available < need) {
      throw Error(
          ErrorCode::io,
          fmt::format("{} MB more are needed in {}, where {} MB are free; make room, or set "
                      "EDGERUNNER_CACHE to another folder",
                      need / 1'000'000, request_.target.parent_path().string(),
                      space.available / 1'000'000));
    }
  }

  void take(std::span<const std::byte> bytes) {
    check_magic(bytes);
    if (total_ && part_->size() + bytes.size() > *total_) {
      drop_part();
      throw Error(ErrorCode::invalid_file,
                  fmt::format("{}: more than the {} bytes that were announced; nothing was kept",
                              request_.url, *total_));
    }
    part_->write(bytes);
    report();
  }

  // At the first bytes, so that a web page of any length ends here.
  void check_magic(std::span<const std::byte> bytes) {
    const std::uint64_t at = part_->size();
    if (at >= kMagic.size()) return;
    const std::string_view wanted = kMagic.substr(at, bytes.size());
    if (std::memcmp(bytes.data(), wanted.data(), wanted.size()) == 0) return;
    drop_part();
    const bool page = bytes[0] == std::byte{'<'};
    throw Error(ErrorCode::invalid_file,
                fmt::format("{}: this is {}, not a GGUF file", request_.url,
                            page ? "a web page" : "something else"));
  }

  // What an answer that ended well lacks.
  std::string missing() const {
    if (!part_) return "the server sent nothing";
    if (whole_ || !total_ || part_->size() == *total_) return {};
    return fmt::format("{} of {} bytes came", part_->size(), *total_);
  }

  DownloadedFile accept(const std::string& sum) {
    try {
      const MappedFile file(part_->path());
      gguf::parse_shard(file.bytes(), request_.url);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::invalid_file) {
        drop_part();
        throw Error(ErrorCode::invalid_file, fmt::format("{}; nothing was kept", error.what()));
      }
      if (error.code() != ErrorCode::unsupported) throw;  // the user's to keep
    }
    part_->commit();
    return {.bytes = part_->size(), .sha256 = sum, .verified = !expected_.empty()};
  }

  void drop_part() {
    if (part_) part_->discard();
    part_.reset();
  }

  void report() const {
    if (options_.on_progress) options_.on_progress({.received = part_->size(), .total = total_});
  }

  void wait(std::chrono::milliseconds time) const {
    std::mutex mutex;
    std::condition_variable_any condition;
    std::unique_lock lock(mutex);
    condition.wait_for(lock, options_.stop, time, [] { return false; });
  }

  const DownloadRequest& request_;
  const DownloadOptions& options_;
  std::optional<PartFile> part_;
  std::string expected_;  // SHA-256; empty where nobody stated it
  std::optional<std::uint64_t> total_;
  std::optional<std::uint64_t> linked_size_;
  bool whole_ = false;    // the server says that nothing is missing
  bool resumed_ = false;  // the beginning is of another request
};

}  // namespace

DownloadedFile download(const DownloadRequest& request, const DownloadOptions& options) {
  return Download(request, options).run();
}

}  // namespace edgerunner::hub
