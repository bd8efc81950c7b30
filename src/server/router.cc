#include "server/router.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "server/api_error.h"

namespace edgerunner::server {
namespace {

// In a time that says nothing about where they differ.
bool equal_secrets(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

}  // namespace

void Router::add(std::string method, std::string path, Handler handler, Access access) {
  routes_.push_back({std::move(method), std::move(path), std::move(handler), access});
}

void Router::handle(const std::shared_ptr<Exchange>& exchange) const {
  try {
    dispatch(exchange);
  } catch (...) {
    exchange->respond(to_response(to_api_error(std::current_exception())));
  }
}

void Router::dispatch(const std::shared_ptr<Exchange>& exchange) const {
  const HttpRequest& request = exchange->request();
  const std::string method = request.method == "HEAD" ? "GET" : request.method;
  std::string allowed;
  for (const Route& route : routes_) {
    if (route.path != request.path) continue;
    if (route.method == method) {
      if (route.access == Access::key && !has_key(request.authorization)) {
        throw ApiError(401, "invalid_request_error",
                       "the API key is missing or wrong; send it as Authorization: Bearer KEY", "",
                       "invalid_api_key");
      }
      return route.handler(exchange);
    }
    allowed += route.method + ", ";
  }
  if (method == "OPTIONS") {
    return exchange->respond({.status = 204,
                              .headers = {{"Access-Control-Allow-Methods", "GET, POST, OPTIONS"},
                                          {"Access-Control-Allow-Headers", "*, Authorization"},
                                          {"Access-Control-Max-Age", "86400"}}});
  }
  if (allowed.empty()) {
    throw ApiError(404, "invalid_request_error",
                   fmt::format("there is nothing at {}", request.path), "", "not_found");
  }
  HttpResponse response =
      to_response(ApiError(405, "invalid_request_error",
                           fmt::format("{} takes {}not {}", request.path, allowed, request.method),
                           "", "method_not_allowed"));
  response.headers = {{"Allow", allowed + "OPTIONS"}};
  exchange->respond(std::move(response));
}

bool Router::has_key(const std::string& authorization) const {
  return api_key_.empty() || equal_secrets(authorization, "Bearer " + api_key_);
}

}  // namespace edgerunner::server
