#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/http_server.h"

namespace edgerunner::server {

// One client's connection: requests one after another, each answered through an Exchange. Lives as
// long as an operation on its socket is under way. Everything but the constructor runs on the
// socket's strand.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  using ErrorCode = boost::system::error_code;

  // `on_close` is called once, on the strand.
  HttpConnection(boost::asio::ip::tcp::socket socket, const HttpServerOptions& options,
                 const HttpServer::Handler& handler, std::function<void()> on_close);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  void start();

  // From any thread: closes once nothing is being answered.
  void drain();
  // From any thread: closes at once.
  void abort();

 private:
  class RequestExchange;
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  void read_header();
  void on_header(ErrorCode error);
  void read_body();
  void on_body(ErrorCode error);
  void refuse(ErrorCode error);
  void dispatch();
  void watch();
  void on_watch(ErrorCode error, std::size_t bytes);
  std::string head(unsigned status, std::string_view content_type, const HttpHeaders& headers,
                   std::string_view framing);
  void send(std::string_view data);
  void on_sent(ErrorCode error);
  void finish_answer();
  void discard();
  void discard_more();
  void next_or_close();
  void drop();
  void close();

  boost::beast::tcp_stream stream_;
  const HttpServerOptions& options_;
  const HttpServer::Handler& handler_;
  std::function<void()> on_close_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  std::shared_ptr<RequestExchange> exchange_;  // being answered
  std::string outgoing_;                       // not yet handed to the socket
  std::string sending_;
  bool keep_alive_ = true;
  bool chunked_ = false;
  bool streaming_ = false;
  bool answered_ = false;  // all of the answer is in outgoing_ or sent
  bool watching_ = false;
  bool busy_ = false;    // a request has been read and is not answered to the end
  bool idle_ = false;    // waits for a request's first bytes
  bool unread_ = false;  // the client may still be sending what was refused
  bool draining_ = false;
  bool closed_ = false;
};

}  // namespace edgerunner::server
