#include "test_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "support/file_builder.h"

namespace edgerunner::test {
namespace {

int make_socket() { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); }

// Gives the socket a free port of 127.0.0.1, and says which.
int take_port(int socket) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket, any, size) != 0 || ::getsockname(socket, any, &size) != 0) {
    throw std::runtime_error("no port of 127.0.0.1 could be had");
  }
  return ntohs(address.sin_port);
}

std::string url_of(int port, const std::string& target) {
  return fmt::format("http://127.0.0.1:{}{}", port, target);
}

void send_all(int connection, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::string receive_head(int connection) {
  std::string head;
  std::array<char, 4096> buffer;
  while (head.find("\r\n\r\n") == std::string::npos) {
    const ssize_t count = ::recv(connection, buffer.data(), buffer.size(), 0);
    if (count <= 0) return {};
    head.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return head;
}

TestRequest parse(const std::string& head) {
  TestRequest request;
  std::istringstream lines(head);
  std::string method;
  std::string line;
  lines >> method >> request.target;
  std::getline(lines, line);
  while (std::getline(lines, line) && line != "\r") {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    std::string name = line.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(), ::tolower);
    request.headers[name] = line.substr(colon + 2, line.size() - colon - 3);  // without \r
  }
  return request;
}

}  // namespace

std::string TestRequest::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

TestServer::TestServer(Handler handler)
    : handler_(std::move(handler)), listener_(make_socket()), port_(take_port(listener_)) {
  if (::listen(listener_, 16) != 0) throw std::runtime_error("the port can't be listened at");
  thread_ = std::thread([this] { serve(); });
}

TestServer::~TestServer() {
  ending_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  if (const int held = held_; held >= 0) ::shutdown(held, SHUT_RDWR);
  thread_.join();
  ::close(listener_);
}

std::string TestServer::url(const std::string& target) const { return url_of(port_, target); }

UnansweredPort::UnansweredPort() : socket_(make_socket()), port_(take_port(socket_)) {}
UnansweredPort::~UnansweredPort() { ::close(socket_); }

std::string UnansweredPort::url(const std::string& target) const { return url_of(port_, target); }

std::vector<TestRequest> TestServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void TestServer::serve() {
  while (!ending_) {
    const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    answer(connection);
    ::close(connection);
  }
}

void TestServer::answer(int connection) {
  const std::string head = receive_head(connection);
  if (head.empty()) return;
  const TestRequest request = parse(head);
  const TestReply reply = handler_(request);
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
  }
  std::string text =
      fmt::format("HTTP/1.1 {} Status\r\nConnection: close\r\nContent-Length: {}\r\n", reply.status,
                  reply.announced.value_or(reply.body.size()));
  for (const auto& [name, value] : reply.headers) text += fmt::format("{}: {}\r\n", name, value);
  send_all(connection, text + "\r\n");
  send_all(connection, std::string_view(reply.body).substr(0, reply.send));
  if (!reply.hold) return;
  held_ = connection;
  std::array<char, 1> byte{};
  while (!ending_ && ::recv(connection, byte.data(), byte.size(), 0) > 0) {
  }
  held_ = -1;
}

TestReply serve_file(const TestRequest& request, const std::string& bytes,
                     const std::string& etag) {
  TestReply reply;
  reply.headers = {{"ETag", etag}, {"Accept-Ranges", "bytes"}};
  const std::string range = request.header("range");
  const std::string condition = request.header("if-range");
  if (range.empty() || (!condition.empty() && condition != etag)) {
    reply.body = bytes;
    return reply;
  }
  const std::size_t from = std::stoul(range.substr(std::string_view("bytes=").size()));
  if (from >= bytes.size()) {
    reply.status = 416;
    reply.headers.emplace_back("Content-Range", fmt::format("bytes */{}", bytes.size()));
    return reply;
  }
  reply.status = 206;
  reply.headers.emplace_back("Content-Range",
                             fmt::format("bytes {}-{}/{}", from, bytes.size() - 1, bytes.size()));
  reply.body = bytes.substr(from);
  return reply;
}

std::string small_gguf(std::size_t floats, unsigned seed) {
  FileBuilder file;
  file.header(1, 0).tensor("weights", {floats}, 0, 0).pad();
  std::mt19937 random(seed);
  for (std::size_t i = 0; i < floats; ++i) file.u32(static_cast<std::uint32_t>(random()));
  const auto& bytes = file.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace edgerunner::test
