#include "server/http_client.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>

namespace edgerunner::test {

HttpClient::HttpClient(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval patience{.tv_sec = 120, .tv_usec = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    close();
    throw std::runtime_error("can't connect");
  }
}

HttpClient::~HttpClient() { close(); }

void HttpClient::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

void HttpClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) throw std::runtime_error("can't send");
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void HttpClient::post(std::string_view path, std::string_view body, std::string_view headers) {
  send(fmt::format("POST {} HTTP/1.1\r\nHost: test\r\n{}Content-Length: {}\r\n\r\n{}", path,
                   headers, body.size(), body));
}

void HttpClient::get(std::string_view path, std::string_view headers) {
  send(fmt::format("GET {} HTTP/1.1\r\nHost: test\r\n{}\r\n", path, headers));
}

bool HttpClient::read_more() {
  std::array<char, 4096> buffer;
  const ssize_t count = ::recv(socket_, buffer.data(), buffer.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    throw std::runtime_error("the server neither answers nor closes");
  }
  if (count > 0) received_.append(buffer.data(), static_cast<std::size_t>(count));
  return count > 0;
}

std::string HttpClient::receive_until(std::string_view mark) {
  std::size_t at = 0;
  while ((at = received_.find(mark)) == std::string::npos) {
    if (!read_more()) throw std::runtime_error("the server closed in the middle: " + received_);
  }
  std::string text = received_.substr(0, at + mark.size());
  received_.erase(0, text.size());
  return text;
}

HttpAnswer HttpClient::receive() {
  HttpAnswer answer;
  answer.headers = receive_until("\r\n\r\n");
  answer.status = std::stoi(answer.headers.substr(answer.headers.find(' ') + 1));
  if (answer.headers.find("chunked") != std::string::npos) {
    while (const std::size_t size = std::stoul(receive_until("\r\n"), nullptr, 16)) {
      while (received_.size() < size + 2) {
        if (!read_more()) throw std::runtime_error("the server closed in a chunk");
      }
      answer.body += received_.substr(0, size);
      received_.erase(0, size + 2);
    }
    receive_until("\r\n");
    return answer;
  }
  const std::size_t field = answer.headers.find("Content-Length: ");
  const std::size_t size =
      field == std::string::npos ? 0 : std::stoul(answer.headers.substr(field + 16));
  while (received_.size() < size) {
    if (!read_more()) throw std::runtime_error("the server closed in a body");
  }
  answer.body = received_.substr(0, size);
  received_.erase(0, size);
  return answer;
}

bool HttpClient::at_end() {
  while (read_more()) {
  }
  return true;
}

}  // namespace edgerunner::test
