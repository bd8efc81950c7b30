#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace edgerunner::test {

struct HttpAnswer {
  int status = 0;
  std::string headers;
  std::string body;  // without the framing of chunks
};

// A connection to a server on this machine, on plain sockets, so that a test decides what is sent
// and when it goes away. Throws std::runtime_error where the other side does otherwise.
class HttpClient {
 public:
  explicit HttpClient(std::uint16_t port);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  void send(std::string_view bytes);
  void post(std::string_view path, std::string_view body, std::string_view headers = "");
  void get(std::string_view path, std::string_view headers = "");

  HttpAnswer receive();                              // one whole answer
  std::string receive_until(std::string_view mark);  // what comes up to and with the mark
  bool at_end();                                     // waits for the other side to close
  void close();

 private:
  bool read_more();

  int socket_ = -1;
  std::string received_;
};

}  // namespace edgerunner::test
