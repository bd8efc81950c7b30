#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/http_client.h"
#include "server/json.h"
#include "server/test_server.h"

namespace edgerunner::test {

inline HttpAnswer post(const TestServer& server, const std::string& path,
                       const server::Json& body) {
  HttpClient client(server.port());
  client.post(path, body.dump());
  return client.receive();
}

// The events of a stream, less the last, which must be [DONE].
inline std::vector<server::Json> events(const std::string& body) {
  std::vector<server::Json> list;
  std::size_t at = 0;
  while (at < body.size()) {
    const std::size_t end = body.find("\n\n", at);
    const std::string data = body.substr(at + 6, end - at - 6);
    at = end + 2;
    if (data == "[DONE]") return list;
    list.push_back(server::Json::parse(data));
  }
  ADD_FAILURE() << "the stream has no end";
  return list;
}

}  // namespace edgerunner::test
