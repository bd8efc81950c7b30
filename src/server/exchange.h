#pragma once

#include <functional>
#include <string>

#include "server/http_message.h"

namespace edgerunner::server {

// One request and the means to answer it, now or later: either respond() once, or begin_stream(),
// any number of write() and end_stream(). All but post() are for the connection's strand, where a
// handler is called and where post() runs what it is given. Once the client has gone, what is
// written goes nowhere.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const HttpRequest& request() const = 0;

  virtual void respond(HttpResponse response) = 0;

  virtual void begin_stream(const std::string& content_type) = 0;
  virtual void write(std::string data) = 0;
  virtual void end_stream() = 0;

  // Runs `work` on the strand, soon; in the order of the calls. From any thread.
  virtual void post(std::function<void()> work) = 0;

  // Called once where the client goes away before its answer has been written to the end.
  virtual void on_drop(std::function<void()> callback) = 0;
};

}  // namespace edgerunner::server
