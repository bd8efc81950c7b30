#include "hub/http_get.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <memory>
#include <new>
#include <string_view>

#include "edgerunner/error.h"

namespace edgerunner::hub {
namespace {

constexpr long kMostRedirects = 10;
constexpr long kConnectSeconds = 30;
constexpr long kStalledSeconds = 60;  // without a byte; then the connection is taken for dead

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "bytes 100-199/200", "bytes */200"
void read_content_range(std::string_view value, HttpHead& head) {
  if (!value.starts_with("bytes ")) return;
  value = trimmed(value.substr(6));
  const std::size_t slash = value.find('/');
  if (slash == std::string_view::npos) return;
  head.range_start = number(value.substr(0, value.find('-')));
  head.range_total = number(value.substr(slash + 1));
}

class Transfer {
 public:
  Transfer(const HttpRequest& request, const HttpCallbacks& callbacks, const std::stop_token& stop)
      : request_(request), callbacks_(callbacks), stop_(stop), curl_(curl_easy_init()) {
    if (!curl_) throw std::bad_alloc();
    configure();
  }

  std::string run() {
    const CURLcode code = curl_easy_perform(curl_.get());
    if (failure_) std::rethrow_exception(failure_);
    if (stop_.stop_requested()) {
      throw Error(ErrorCode::cancelled, "stopped; the same command goes on from here");
    }
    if (code == CURLE_OK) return {};
    const char* const detail = message_[0] != '\0' ? message_.data() : curl_easy_strerror(code);
    switch (code) {
      case CURLE_COULDNT_CONNECT:
      case CURLE_OPERATION_TIMEDOUT:
      case CURLE_PARTIAL_FILE:
      case CURLE_GOT_NOTHING:
      case CURLE_SEND_ERROR:
      case CURLE_RECV_ERROR:
      case CURLE_SSL_CONNECT_ERROR:
      case CURLE_HTTP2:
      case CURLE_HTTP2_STREAM:
        return detail;
      default:
        throw Error(ErrorCode::io, fmt::format("can't fetch {}: {}", request_.url, detail));
    }
  }

 private:
  struct Cleanup {
    void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  };

  template <class Value>
  void set(CURLoption option, Value value) {
    const CURLcode code = curl_easy_setopt(curl_.get(), option, value);
    if (code != CURLE_OK) {
      throw Error(ErrorCode::io, fmt::format("libcurl refuses option {}: {}", int{option},
                                             curl_easy_strerror(code)));
    }
  }

  void configure() {
    const bool secure = request_.url.starts_with("https:");
    set(CURLOPT_URL, request_.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
    set(CURLOPT_FOLLOWLOCATION, 1L);
    set(CURLOPT_MAXREDIRS, kMostRedirects);
    set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_USERAGENT, "edgerunner");
    set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, kStalledSeconds);
    set(CURLOPT_ERRORBUFFER, message_.data());
    if (!request_.bearer.empty()) {
      set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BEARER));
      set(CURLOPT_XOAUTH2_BEARER, request_.bearer.c_str());
    }
    if (request_.from > 0) {
      set(CURLOPT_RANGE, fmt::format("{}-", request_.from).c_str());
      if (!request_.if_range.empty()) {
        headers_.reset(curl_slist_append(nullptr, ("If-Range: " + request_.if_range).c_str()));
        set(CURLOPT_HTTPHEADER, headers_.get());
      }
    }
    set(CURLOPT_HEADERFUNCTION, &Transfer::on_header);
    set(CURLOPT_HEADERDATA, this);
    set(CURLOPT_WRITEFUNCTION, &Transfer::on_body);
    set(CURLOPT_WRITEDATA, this);
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, &Transfer::on_progress);
    set(CURLOPT_XFERINFODATA, this);
  }

  // No exception may pass through libcurl: it is kept, and the transfer made to end.
  template <class Action>
  bool guarded(Action action) {
    try {
      action();
      return true;
    } catch (...) {
      failure_ = std::current_exception();
      return false;
    }
  }

  static std::size_t on_header(char* data, std::size_t, std::size_t size, void* self) {
    auto& transfer = *static_cast<Transfer*>(self);
    return transfer.guarded([&] { transfer.read_header({data, size}); }) ? size : 0;
  }

  static std::size_t on_body(char* data, std::size_t, std::size_t size, void* self) {
    auto& transfer = *static_cast<Transfer*>(self);
    const int status = transfer.head_.status;
    if (status != 200 && status != 206) return size;
    const auto bytes = std::as_bytes(std::span(data, size));
    return transfer.guarded([&] { transfer.callbacks_.on_body(bytes); }) ? size : 0;
  }

  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    return static_cast<Transfer*>(self)->stop_.stop_requested() ? 1 : 0;
  }

  void read_header(std::string_view line) {
    if (line.starts_with("HTTP/")) {
      HttpHead next;
      next.linked_etag = head_.linked_etag;
      next.linked_size = head_.linked_size;
      head_ = next;
      redirects_ = false;
      const std::size_t space = line.find(' ');
      if (space != std::string_view::npos) {
        head_.status = int(number(line.substr(space + 1, 3)).value_or(0));
      }
    } else if (trimmed(line).empty()) {
      const bool passing = head_.status < 200 || (redirects_ && head_.status < 400);
      if (!passing) callbacks_.on_head(head_);
      if (head_.status >= 200) first_answer_ = false;
    } else if (const std::size_t colon = line.find(':'); colon != std::string_view::npos) {
      std::string name(line.substr(0, colon));
      std::transform(name.begin(), name.end(), name.begin(),
                     [](unsigned char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : char(c); });
      read_field(name, trimmed(line.substr(colon + 1)));
    }
  }

  void read_field(std::string_view name, std::string_view value) {
    if (name == "location") redirects_ = head_.status >= 300 && head_.status < 400;
    if (name == "content-type") head_.content_type = value;
    if (name == "etag") head_.etag = value;
    if (name == "last-modified") head_.last_modified = value;
    if (name == "content-length") head_.content_length = number(value);
    if (name == "content-range") read_content_range(value, head_);
    if (name == "x-linked-etag" && first_answer_) head_.linked_etag = value;
    if (name == "x-linked-size" && first_answer_) head_.linked_size = number(value);
  }

  const HttpRequest& request_;
  const HttpCallbacks& callbacks_;
  const std::stop_token& stop_;
  std::unique_ptr<CURL, Cleanup> curl_;
  std::unique_ptr<curl_slist, Cleanup> headers_;
  std::array<char, CURL_ERROR_SIZE> message_{};
  HttpHead head_;
  bool redirects_ = false;
  bool first_answer_ = true;
  std::exception_ptr failure_;
};

}  // namespace

std::string http_get(const HttpRequest& request, const HttpCallbacks& callbacks,
                     const std::stop_token& stop) {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (initialised != CURLE_OK) throw Error(ErrorCode::io, "libcurl can't be initialised");
  return Transfer(request, callbacks, stop).run();
}

}  // namespace edgerunner::hub
