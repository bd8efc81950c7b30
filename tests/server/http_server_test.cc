#include "server/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "server/http_client.h"

namespace edgerunner::test {
namespace {

using server::Exchange;
using server::HttpServer;
using server::HttpServerOptions;
using testing::HasSubstr;

HttpServerOptions on_free_port() {
  HttpServerOptions options;
  options.port = 0;
  options.threads = 2;
  options.body_limit = 1000;
  return options;
}

// A server with a handler of the test's.
struct Running {
  explicit Running(HttpServer::Handler handler, const HttpServerOptions& options = on_free_port())
      : http(options, std::move(handler)), thread([this] { http.run(); }) {}
  ~Running() {
    http.drain([] {});
    thread.join();
  }
  HttpServer http;
  std::thread thread;
};

void echo(const std::shared_ptr<Exchange>& exchange) {
  exchange->respond({.content_type = "text/plain", .body = exchange->request().body});
}

TEST(HttpServer, AnswersRequestAfterRequestOnOneConnection) {
  Running running(echo);
  HttpClient client(running.http.port());
  for (const char* body : {"one", "two", ""}) {
    client.post("/", body);
    const HttpAnswer answer = client.receive();
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, body);
    EXPECT_THAT(answer.headers, HasSubstr("Connection: keep-alive"));
  }
}

TEST(HttpServer, AnswersRequestsThatWereSentAhead) {
  Running running(echo);
  HttpClient client(running.http.port());
  client.post("/", "one");
  client.post("/", "two");
  EXPECT_EQ(client.receive().body, "one");
  EXPECT_EQ(client.receive().body, "two");
}

TEST(HttpServer, ClosesWhereTheClientAsksForIt) {
  Running running(echo);
  HttpClient client(running.http.port());
  client.post("/", "one", "Connection: close\r\n");
  EXPECT_THAT(client.receive().headers, HasSubstr("Connection: close"));
  EXPECT_TRUE(client.at_end());
}

TEST(HttpServer, StreamsInChunks) {
  Running running([](const auto& exchange) {
    exchange->begin_stream("text/event-stream");
    exchange->write("one,");
    exchange->post([exchange] {
      exchange->write("two");
      exchange->end_stream();
      exchange->write("after the end");
    });
  });
  HttpClient client(running.http.port());
  for (int i = 0; i < 2; ++i) {
    client.get("/");
    EXPECT_EQ(client.receive().body, "one,two");
  }
}

TEST(HttpServer, StreamsToTheEndOfTheConnectionForHttp10) {
  Running running([](const auto& exchange) {
    exchange->begin_stream("text/plain");
    exchange->write("one");
    exchange->end_stream();
  });
  HttpClient client(running.http.port());
  client.send("GET / HTTP/1.0\r\n\r\n");
  const std::string head = client.receive_until("\r\n\r\n");
  EXPECT_EQ(head.find("chunked"), std::string::npos);
  EXPECT_EQ(client.receive_until("one"), "one");
  EXPECT_TRUE(client.at_end());
}

TEST(HttpServer, RefusesABodyOverTheLimit) {
  Running running(echo);
  HttpClient client(running.http.port());
  client.post("/", std::string(1001, 'x'));
  const HttpAnswer answer = client.receive();
  EXPECT_EQ(answer.status, 413);
  EXPECT_THAT(answer.body, HasSubstr("1000 bytes"));
}

TEST(HttpServer, RefusesWhatIsNotHttp) {
  Running running(echo);
  HttpClient client(running.http.port());
  client.send("\x16\x03\x01 nonsense\r\n\r\n");
  EXPECT_EQ(client.receive().status, 400);
}

TEST(HttpServer, RefusesHeadersOverTheLimit) {
  Running running(echo);
  HttpClient client(running.http.port());
  client.send("GET / HTTP/1.1\r\nX: " + std::string(20000, 'x') + "\r\n\r\n");
  EXPECT_EQ(client.receive().status, 431);
}

TEST(HttpServer, TellsAClientThatWaitsToGoOnWithItsBody) {
  Running running(echo);
  HttpClient client(running.http.port());
  client.send("POST / HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_THAT(client.receive_until("\r\n\r\n"), HasSubstr("100 Continue"));
  client.send("abc");
  EXPECT_EQ(client.receive().body, "abc");
}

TEST(HttpServer, ClosesAConnectionWhoseRequestDoesNotCome) {
  HttpServerOptions options = on_free_port();
  options.idle_timeout = std::chrono::milliseconds(30);
  Running running(echo, options);
  HttpClient client(running.http.port());
  client.send("POST / HT");
  EXPECT_TRUE(client.at_end());
}

TEST(HttpServer, ClosesAConnectionWhoseBodyDoesNotCome) {
  HttpServerOptions options = on_free_port();
  options.read_timeout = std::chrono::milliseconds(30);
  Running running(echo, options);
  HttpClient client(running.http.port());
  client.send("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab");
  EXPECT_TRUE(client.at_end());
}

TEST(HttpServer, DropsAClientThatDoesNotTakeItsAnswer) {
  HttpServerOptions options = on_free_port();
  options.write_timeout = std::chrono::milliseconds(30);
  std::promise<void> dropped;
  Running running(
      [&dropped](const auto& exchange) {
        exchange->on_drop([&dropped] { dropped.set_value(); });
        exchange->begin_stream("text/plain");
        exchange->write(std::string(std::size_t{64} << 20, 'x'));  // more than sockets hold
      },
      options);
  HttpClient client(running.http.port());
  client.get("/");
  EXPECT_EQ(dropped.get_future().wait_for(std::chrono::minutes(2)), std::future_status::ready);
}

TEST(HttpServer, TurnsWhatAHandlerThrowsIntoAnAnswer) {
  Running running([](const auto&) { throw std::runtime_error("a handler's mistake"); });
  HttpClient client(running.http.port());
  client.get("/");
  EXPECT_EQ(client.receive().status, 500);
}

TEST(HttpServer, NoticesAClientThatGoesAwayWhileItWaits) {
  std::promise<void> dropped;
  std::shared_ptr<Exchange> held;
  std::promise<void> handled;
  Running running([&](const auto& exchange) {
    held = exchange;
    exchange->on_drop([&dropped] { dropped.set_value(); });
    handled.set_value();
  });
  HttpClient client(running.http.port());
  client.get("/");
  handled.get_future().wait();
  client.close();
  EXPECT_EQ(dropped.get_future().wait_for(std::chrono::minutes(2)), std::future_status::ready);
  held.reset();
}

TEST(HttpServer, DoesNotCallAnAnsweredClientDropped) {
  std::atomic<int> drops = 0;
  {
    Running running([&](const auto& exchange) {
      exchange->on_drop([&drops] { ++drops; });
      exchange->respond({.body = "{}"});
    });
    for (int i = 0; i < 100; ++i) {
      HttpClient client(running.http.port());
      client.get("/");
      EXPECT_EQ(client.receive().status, 200);
    }
  }
  EXPECT_EQ(drops, 0);
}

TEST(HttpServer, DrainsByFinishingWhatIsUnderWay) {
  std::shared_ptr<Exchange> held;
  std::promise<void> handled;
  auto running = std::make_unique<Running>([&](const auto& exchange) {
    held = exchange;
    handled.set_value();
  });
  HttpClient idle(running->http.port());
  HttpClient client(running->http.port());
  client.get("/");
  handled.get_future().wait();
  running->http.drain([] {});
  EXPECT_TRUE(idle.at_end());
  held->post([&held] {
    held->respond({.body = "late"});
    held.reset();
  });
  EXPECT_EQ(client.receive().body, "late");
  EXPECT_TRUE(client.at_end());
  running.reset();
}

TEST(HttpServer, ClosesAtTheDeadlineOfDraining) {
  HttpServerOptions options = on_free_port();
  options.drain_timeout = std::chrono::milliseconds(20);
  std::promise<void> deadline;
  std::promise<void> handled;
  std::shared_ptr<Exchange> held;
  auto running = std::make_unique<Running>(
      [&](const auto& exchange) {
        held = exchange;
        handled.set_value();
      },
      options);
  HttpClient client(running->http.port());
  client.get("/");
  handled.get_future().wait();
  running->http.drain([&deadline] { deadline.set_value(); });
  deadline.get_future().wait();
  EXPECT_TRUE(client.at_end());
  running->thread.join();
  running->thread = std::thread([] {});
  held.reset();
}

TEST(HttpServer, NamesThePortThatItCantHave) {
  Running running(echo);
  HttpServerOptions options;
  options.port = running.http.port();
  try {
    const HttpServer second(options, echo);
    FAIL() << "two servers on one port";
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), HasSubstr(std::to_string(options.port)));
  }
}

}  // namespace
}  // namespace edgerunner::test
