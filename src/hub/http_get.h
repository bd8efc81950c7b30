#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

namespace edgerunner::hub {

struct HttpRequest {
  std::string url;
  std::string bearer;      // a token for the host of `url` alone; empty: none
  std::uint64_t from = 0;  // the first byte wanted
  std::string if_range;    // the validator under which `from` makes sense; else all is wanted
};

// The head of an answer, after any redirects.
struct HttpHead {
  int status = 0;
  std::string content_type;
  std::string etag;  // as sent, quotes included
  std::string last_modified;
  std::optional<std::uint64_t> content_length;
  std::optional<std::uint64_t> range_start;  // of Content-Range
  std::optional<std::uint64_t> range_total;
  // What the host of the request itself said before it redirected: the hub's facts about a file
  // that is stored elsewhere.
  std::string linked_etag;
  std::optional<std::uint64_t> linked_size;
};

// Either may throw: the transfer ends, and the exception comes out of http_get().
struct HttpCallbacks {
  std::function<void(const HttpHead&)> on_head;
  std::function<void(std::span<const std::byte>)> on_body;  // of an answer of 200 or 206 alone
};

// One GET. Redirects are followed, from https to https alone, and the token stays with the first
// host. Proxies are what libcurl reads from the environment (https_proxy, no_proxy, ...). Returns
// what cut the answer short and may pass by trying again, or an empty string; throws Error(io) for
// what won't pass, Error(cancelled) when stopped.
std::string http_get(const HttpRequest& request, const HttpCallbacks& callbacks,
                     const std::stop_token& stop);

}  // namespace edgerunner::hub
