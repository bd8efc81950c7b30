#include "server/http_connection.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/status.hpp>
#include <utility>

#include "server/api_error.h"

namespace edgerunner::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr std::uint32_t kHeaderLimit = 16U << 10;
constexpr std::size_t kWatchBytes = 4096;
constexpr std::size_t kMostPipelined = std::size_t{64} << 10;  // bytes read ahead of an answer

}  // namespace

// Holds the connection for the handler; what arrives after the answer's end is ignored.
class HttpConnection::RequestExchange : public Exchange {
 public:
  RequestExchange(std::shared_ptr<HttpConnection> connection, HttpRequest request)
      : connection_(std::move(connection)), request_(std::move(request)) {}

  const HttpRequest& request() const override { return request_; }

  void respond(HttpResponse response) override {
    if (!current() || connection_->streaming_) return;
    std::string data = connection_->head(
        response.status, response.content_type, response.headers,
        response.status == 204 ? "" : fmt::format("Content-Length: {}\r\n", response.body.size()));
    if (request_.method != "HEAD") data += response.body;
    end(data);
  }

  void begin_stream(const std::string& content_type) override {
    if (!current()) return;
    connection_->streaming_ = true;
    connection_->send(
        connection_->head(200, content_type, {{"Cache-Control", "no-cache"}},
                          connection_->chunked_ ? "Transfer-Encoding: chunked\r\n" : ""));
  }

  void write(std::string data) override {
    if (!current() || data.empty()) return;
    connection_->send(connection_->chunked_ ? fmt::format("{:x}\r\n{}\r\n", data.size(), data)
                                            : data);
  }

  void end_stream() override {
    if (!current()) return;
    end(connection_->chunked_ ? "0\r\n\r\n" : "");
  }

  void post(std::function<void()> work) override {
    asio::post(connection_->stream_.get_executor(), std::move(work));
  }

  void on_drop(std::function<void()> callback) override {
    if (current()) dropped_ = std::move(callback);
  }

  void tell_dropped() {
    if (const auto callback = std::exchange(dropped_, nullptr)) callback();
  }

 private:
  // Nothing is left to cancel: a client that has read the last bytes may close before this side
  // hears that they were sent.
  void end(std::string_view last) {
    dropped_ = nullptr;
    connection_->answered_ = true;
    connection_->send(last);
  }

  bool current() const {
    return connection_->exchange_.get() == this && !connection_->answered_ && !connection_->closed_;
  }

  std::shared_ptr<HttpConnection> connection_;
  HttpRequest request_;
  std::function<void()> dropped_;
};

HttpConnection::HttpConnection(asio::ip::tcp::socket socket, const HttpServerOptions& options,
                               const HttpServer::Handler& handler, std::function<void()> on_close)
    : stream_(std::move(socket)),
      options_(options),
      handler_(handler),
      on_close_(std::move(on_close)) {}

HttpConnection::~HttpConnection() = default;

void HttpConnection::start() {
  ErrorCode ignored;
  stream_.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
  asio::post(stream_.get_executor(), [self = shared_from_this()] { self->read_header(); });
}

void HttpConnection::drain() {
  asio::post(stream_.get_executor(), [self = shared_from_this()] {
    self->draining_ = true;
    if (self->idle_ && self->buffer_.size() == 0) self->close();
  });
}

void HttpConnection::abort() {
  asio::post(stream_.get_executor(), [self = shared_from_this()] { self->drop(); });
}

void HttpConnection::read_header() {
  if (closed_) return;
  idle_ = true;
  parser_.emplace();
  parser_->header_limit(kHeaderLimit);
  parser_->body_limit(options_.body_limit);
  stream_.expires_after(options_.idle_timeout);
  http::async_read_header(
      stream_, buffer_, *parser_,
      [self = shared_from_this()](ErrorCode error, std::size_t) { self->on_header(error); });
}

void HttpConnection::on_header(ErrorCode error) {
  idle_ = false;
  if (closed_) return;
  if (error) return refuse(error);
  if (beast::iequals(parser_->get()[http::field::expect], "100-continue")) {
    send("HTTP/1.1 100 Continue\r\n\r\n");
  }
  read_body();
}

void HttpConnection::read_body() {
  stream_.expires_after(options_.read_timeout);
  http::async_read(
      stream_, buffer_, *parser_,
      [self = shared_from_this()](ErrorCode error, std::size_t) { self->on_body(error); });
}

void HttpConnection::on_body(ErrorCode error) {
  if (closed_) return;
  if (error) return refuse(error);
  dispatch();
}

// What is not a request that can be taken: answered where the client is likely to be there still.
void HttpConnection::refuse(ErrorCode error) {
  if (error.category() != http::make_error_code(http::error::body_limit).category() ||
      error == http::error::end_of_stream || error == http::error::partial_message) {
    return close();
  }
  keep_alive_ = false;
  busy_ = answered_ = unread_ = true;
  ApiError answer(400, "invalid_request_error", "the request is not valid HTTP");
  if (error == http::error::body_limit) {
    answer =
        ApiError(413, "invalid_request_error",
                 fmt::format("the body is larger than the limit of {} bytes", options_.body_limit));
  } else if (error == http::error::header_limit) {
    answer =
        ApiError(431, "invalid_request_error",
                 fmt::format("the headers are larger than the limit of {} bytes", kHeaderLimit));
  }
  const HttpResponse response = to_response(answer);
  send(head(response.status, response.content_type, {},
            fmt::format("Content-Length: {}\r\n", response.body.size())) +
       response.body);
}

void HttpConnection::dispatch() {
  auto& message = parser_->get();
  HttpRequest request;
  request.method = std::string(message.method_string());
  request.path = std::string(message.target().substr(0, message.target().find('?')));
  request.authorization = std::string(message[http::field::authorization]);
  keep_alive_ = message.keep_alive();
  chunked_ = message.version() >= 11;
  if (!chunked_) keep_alive_ = false;
  request.body = std::move(message.body());
  parser_.reset();
  busy_ = true;
  answered_ = streaming_ = false;
  exchange_ = std::make_shared<RequestExchange>(shared_from_this(), std::move(request));
  const std::shared_ptr<RequestExchange> exchange = exchange_;
  watch();
  try {
    handler_(exchange);
  } catch (...) {
    exchange->respond(to_response(to_api_error(std::current_exception())));
  }
}

// Reads while a request is answered: the end of the stream says that the client has gone, bytes
// belong to its next request.
void HttpConnection::watch() {
  if (watching_ || closed_ || buffer_.size() >= kMostPipelined) return;
  watching_ = true;
  stream_.expires_never();
  stream_.async_read_some(buffer_.prepare(kWatchBytes),
                          [self = shared_from_this()](ErrorCode error, std::size_t bytes) {
                            self->on_watch(error, bytes);
                          });
}

void HttpConnection::on_watch(ErrorCode error, std::size_t bytes) {
  watching_ = false;
  if (closed_) return;
  if (!error) {
    buffer_.commit(bytes);
    if (busy_) return watch();
    return next_or_close();
  }
  if (!busy_ && error == asio::error::operation_aborted) return next_or_close();
  drop();
}

std::string HttpConnection::head(unsigned status, std::string_view content_type,
                                 const HttpHeaders& headers, std::string_view framing) {
  if (draining_) keep_alive_ = false;
  if (options_.on_answer) options_.on_answer(status);
  const auto reason = http::obsolete_reason(http::int_to_status(status));
  std::string text =
      fmt::format("HTTP/1.1 {} {}\r\n", status, std::string_view(reason.data(), reason.size()));
  if (status != 204) text += fmt::format("Content-Type: {}\r\n", content_type);
  text += framing;
  for (const HttpHeaders* list : {&options_.headers, &headers}) {
    for (const auto& [name, value] : *list) text += fmt::format("{}: {}\r\n", name, value);
  }
  text += keep_alive_ ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
  return text;
}

void HttpConnection::send(std::string_view data) {
  outgoing_ += data;
  if (!sending_.empty()) return;
  if (outgoing_.empty()) {
    if (answered_) finish_answer();
    return;
  }
  sending_.swap(outgoing_);
  stream_.expires_after(options_.write_timeout);
  asio::async_write(
      stream_, asio::buffer(sending_),
      [self = shared_from_this()](ErrorCode error, std::size_t) { self->on_sent(error); });
}

void HttpConnection::on_sent(ErrorCode error) {
  sending_.clear();
  if (closed_) return;
  if (error) return drop();
  send("");
}

void HttpConnection::finish_answer() {
  if (!busy_) return;
  busy_ = false;
  exchange_.reset();
  if (unread_) return discard();
  if (!keep_alive_ || draining_) return close();
  if (watching_) {
    stream_.socket().cancel();  // on_watch goes on
  } else {
    next_or_close();
  }
}

// Closing while data arrives would reset the connection, and the client might lose the answer.
void HttpConnection::discard() {
  ErrorCode ignored;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  stream_.expires_after(options_.read_timeout);
  discard_more();
}

void HttpConnection::discard_more() {
  buffer_.clear();
  stream_.async_read_some(buffer_.prepare(kMostPipelined),
                          [self = shared_from_this()](ErrorCode error, std::size_t) {
                            if (error) return self->close();
                            self->discard_more();
                          });
}

void HttpConnection::next_or_close() {
  if (draining_ && buffer_.size() == 0) return close();
  read_header();
}

void HttpConnection::drop() {
  if (closed_) return;
  // Before the connection counts as closed, so that whoever sees it gone finds its work cancelled.
  if (const std::shared_ptr<RequestExchange> exchange = exchange_) exchange->tell_dropped();
  close();
}

void HttpConnection::close() {
  if (std::exchange(closed_, true)) return;
  ErrorCode ignored;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
  stream_.close();
  exchange_.reset();
  if (const auto on_close = std::exchange(on_close_, nullptr)) on_close();
}

}  // namespace edgerunner::server
