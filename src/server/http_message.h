#pragma once

#include <string>
#include <utility>
#include <vector>

namespace edgerunner::server {

struct HttpRequest {
  std::string method;
  std::string path;           // without the query
  std::string authorization;  // header
  std::string body;
};

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpResponse {
  unsigned status = 200;
  std::string content_type = "application/json";
  std::string body;
  HttpHeaders headers;
};

}  // namespace edgerunner::server
