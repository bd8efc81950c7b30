#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "server/exchange.h"

namespace edgerunner::server {

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;  // 0: one that is free
  std::size_t body_limit = std::size_t{16} << 20;
  std::size_t max_connections = 1024;
  std::chrono::milliseconds read_timeout{30'000};   // of a request, once it has begun
  std::chrono::milliseconds idle_timeout{75'000};   // between two requests of a connection
  std::chrono::milliseconds write_timeout{30'000};  // in which a client must take something
  std::chrono::milliseconds drain_timeout{30'000};  // for what is under way when it drains
  std::function<void(unsigned status)> on_answer;   // may be empty; called from any thread
  HttpHeaders headers;                              // of every answer
  int threads = 4;  // most parsing of requests at once; they sleep while there is nothing to do
};

// HTTP/1.1 with keep-alive. Reads on while a request is being answered, so that a client that goes
// away is noticed in whatever phase its request is.
class HttpServer {
 public:
  using Handler = std::function<void(const std::shared_ptr<Exchange>&)>;

  // Listens. Throws Error(io) naming host and port where that fails.
  HttpServer(const HttpServerOptions& options, Handler handler);
  ~HttpServer();

  std::uint16_t port() const;

  // Serves until drain() has been called and every answer has been given.
  void run();

  // No new connections; idle ones are closed, others after their answer. `on_deadline` is called
  // where answers are still missing after drain_timeout; then connections are closed. From any
  // thread.
  void drain(std::function<void()> on_deadline);

  std::size_t connections() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace edgerunner::server
