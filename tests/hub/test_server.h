#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace edgerunner::test {

struct TestRequest {
  std::string target;                          // as in "GET TARGET HTTP/1.1"
  std::map<std::string, std::string> headers;  // by lower-case name

  std::string header(const std::string& name) const;
};

struct TestReply {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::optional<std::size_t> announced;  // Content-Length; by default the truth
  // Of the body, after which the connection ends ...
  std::size_t send = std::numeric_limits<std::size_t>::max();
  bool hold = false;  // ... when the client ends it
};

// An HTTP server on 127.0.0.1 that answers as badly as a test wants: one connection at a time, one
// request a connection.
class TestServer {
 public:
  using Handler = std::function<TestReply(const TestRequest&)>;
  explicit TestServer(Handler handler);
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;
  ~TestServer();

  std::string url(const std::string& target) const;
  // All that were answered, in order.
  std::vector<TestRequest> requests() const;

 private:
  void serve();
  void answer(int connection);

  Handler handler_;
  int listener_;
  int port_;
  std::atomic<int> held_ = -1;
  std::atomic<bool> ending_ = false;
  mutable std::mutex mutex_;
  std::vector<TestRequest> requests_;
  std::thread thread_;
};

// A port of 127.0.0.1 that refuses connections for as long as this lives: held, so that nobody else
// gets it, and not listened at.
class UnansweredPort {
 public:
  UnansweredPort();
  UnansweredPort(const UnansweredPort&) = delete;
  UnansweredPort& operator=(const UnansweredPort&) = delete;
  ~UnansweredPort();

  std::string url(const std::string& target) const;

 private:
  int socket_;
  int port_;
};

// What a good server does with a file: it honours ranges of it, if they are of this version.
TestReply serve_file(const TestRequest& request, const std::string& bytes, const std::string& etag);

// A GGUF file of one tensor of `floats` numbers, no two files of different seeds alike.
std::string small_gguf(std::size_t floats, unsigned seed = 1);

}  // namespace edgerunner::test
