#include "server/http_server.h"

#include <fmt/format.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "edgerunner/error.h"
#include "server/http_connection.h"

namespace edgerunner::server {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;

// The acceptor, the timer and the set of connections are used on `strand_`.
class HttpServer::Impl {
 public:
  Impl(const HttpServerOptions& options, Handler handler)
      : options_(options), handler_(std::move(handler)) {
    listen();
  }

  std::uint16_t port() const { return port_; }
  std::size_t connections() const { return count_; }

  void run() {
    accept();
    std::vector<std::thread> threads;
    for (int i = 1; i < options_.threads; ++i) threads.emplace_back([this] { context_.run(); });
    context_.run();
    for (std::thread& thread : threads) thread.join();
  }

  void drain(std::function<void()> on_deadline) {
    asio::post(strand_, [this, on_deadline = std::move(on_deadline)]() mutable {
      if (std::exchange(draining_, true)) return;
      acceptor_.close();
      for (const auto& connection : open_) connection->drain();
      if (open_.empty()) return;
      deadline_.expires_after(options_.drain_timeout);
      deadline_.async_wait([this, on_deadline = std::move(on_deadline)](auto error) {
        if (error) return;
        on_deadline();
        for (const auto& connection : open_) connection->abort();
      });
    });
  }

 private:
  void listen() {
    boost::system::error_code error;
    Tcp::resolver resolver(context_);
    const auto found = resolver.resolve(options_.host, std::to_string(options_.port),
                                        Tcp::resolver::passive, error);
    if (!error) {
      const Tcp::endpoint endpoint = *found.begin();
      acceptor_.open(endpoint.protocol(), error);
      if (!error) acceptor_.set_option(Tcp::acceptor::reuse_address(true), error);
      if (!error) acceptor_.bind(endpoint, error);
      if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    }
    if (error) {
      throw Error(ErrorCode::io,
                  fmt::format("can't listen on {} port {}: {}; choose another --host or --port",
                              options_.host, options_.port, error.message()));
    }
    port_ = acceptor_.local_endpoint().port();
  }

  void accept() {
    acceptor_.async_accept(
        asio::make_strand(context_),
        asio::bind_executor(strand_, [this](boost::system::error_code error, Tcp::socket socket) {
          if (!acceptor_.is_open()) return;
          if (error) return accept_later();
          if (open_.size() < options_.max_connections) open(std::move(socket));
          accept();
        }));
  }

  // Out of file descriptors, most likely: some will have been closed by then.
  void accept_later() {
    deadline_.expires_after(std::chrono::milliseconds(100));
    deadline_.async_wait([this](auto error) {
      if (!error && acceptor_.is_open()) accept();
    });
  }

  void open(Tcp::socket socket) {
    auto key = std::make_shared<std::weak_ptr<HttpConnection>>();
    const auto on_close = [this, key] {
      asio::post(strand_, [this, key] {
        open_.erase(key->lock());
        count_ = open_.size();
        if (draining_ && open_.empty()) deadline_.cancel();
      });
    };
    const auto connection =
        std::make_shared<HttpConnection>(std::move(socket), options_, handler_, on_close);
    *key = connection;
    open_.insert(connection);
    count_ = open_.size();
    connection->start();
  }

  const HttpServerOptions options_;
  const Handler handler_;
  asio::io_context context_;
  asio::strand<asio::io_context::executor_type> strand_ = asio::make_strand(context_);
  Tcp::acceptor acceptor_{strand_};
  asio::steady_timer deadline_{strand_};
  std::uint16_t port_ = 0;
  bool draining_ = false;
  std::unordered_set<std::shared_ptr<HttpConnection>> open_;
  std::atomic<std::size_t> count_ = 0;
};

HttpServer::HttpServer(const HttpServerOptions& options, Handler handler)
    : impl_(std::make_unique<Impl>(options, std::move(handler))) {}
HttpServer::~HttpServer() = default;

std::uint16_t HttpServer::port() const { return impl_->port(); }
void HttpServer::run() { impl_->run(); }
void HttpServer::drain(std::function<void()> on_deadline) { impl_->drain(std::move(on_deadline)); }
std::size_t HttpServer::connections() const { return impl_->connections(); }

}  // namespace edgerunner::server
