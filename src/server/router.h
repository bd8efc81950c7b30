#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/exchange.h"

namespace edgerunner::server {

// Which handler answers which method and path. Refuses the rest: 401 without the key, 404, 405;
// answers OPTIONS, which a browser asks before it calls from another site's page.
class Router {
 public:
  using Handler = std::function<void(const std::shared_ptr<Exchange>&)>;
  enum class Access { key, anyone };

  // An empty key: anyone may call everything.
  explicit Router(std::string api_key) : api_key_(std::move(api_key)) {}

  void add(std::string method, std::string path, Handler handler, Access access = Access::key);

  // What a handler throws becomes an answer.
  void handle(const std::shared_ptr<Exchange>& exchange) const;

 private:
  struct Route {
    std::string method;
    std::string path;
    Handler handler;
    Access access;
  };

  void dispatch(const std::shared_ptr<Exchange>& exchange) const;
  bool has_key(const std::string& authorization) const;

  std::string api_key_;
  std::vector<Route> routes_;
};

}  // namespace edgerunner::server
