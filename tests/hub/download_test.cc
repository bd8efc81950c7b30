#include "hub/download.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "edgerunner/error.h"
#include "expect_error_naming.h"
#include "hub/sha256.h"
#include "support/temporary_folder.h"
#include "test_server.h"

namespace edgerunner::hub {
namespace {

using test::serve_file;
using test::TestReply;
using test::TestRequest;
using test::TestServer;
using test::UnansweredPort;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DownloadTest : public ::testing::Test {
 protected:
  DownloadTest() { ::setenv("no_proxy", "127.0.0.1", 1); }

  DownloadedFile fetch(const TestServer& server, DownloadRequest request = {}) const {
    if (request.url.empty()) request.url = server.url("/model.gguf");
    request.target = target_;
    DownloadOptions options;
    options.tries = 3;
    options.pause = std::chrono::milliseconds(0);
    return download(request, options);
  }

  // The names in the folder, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    if (!std::filesystem::exists(target_.parent_path())) return names;
    for (const auto& entry : std::filesystem::directory_iterator(target_.parent_path())) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  std::string contents() const {
    std::ifstream file(target_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void expect_complete() const {
    EXPECT_EQ(contents(), file_);
    EXPECT_THAT(names(), ElementsAre("model.gguf"));
  }
  // A failure that leaves nothing.
  void expect_refusal(const TestServer& server, ErrorCode code,
                      const std::vector<std::string>& parts, DownloadRequest request = {}) const {
    test::expect_error_naming(code, parts, [&] { fetch(server, std::move(request)); });
    EXPECT_THAT(names(), IsEmpty());
  }

  const std::string file_ = test::small_gguf(50000);
  const std::string sum_ = sha256_of(file_);
  test::TemporaryFolder folder_;
  std::filesystem::path target_ = folder_ / "sub/model.gguf";
};

TEST_F(DownloadTest, FetchesAFile) {
  const TestServer server(
      [&](const TestRequest& request) { return serve_file(request, file_, "\"v1\""); });
  const DownloadedFile fetched = fetch(server);
  EXPECT_EQ(fetched.bytes, file_.size());
  EXPECT_EQ(fetched.sha256, sum_);
  EXPECT_FALSE(fetched.verified);
  expect_complete();
}

TEST_F(DownloadTest, GoesOnWhereAConnectionDropped) {
  std::size_t chunk = 0;
  const TestServer server([&](const TestRequest& request) {
    TestReply reply = serve_file(request, file_, "\"v1\"");
    reply.send = chunk += 30000;
    return reply;
  });
  EXPECT_TRUE(fetch(server, {.sha256 = sum_}).verified);
  expect_complete();
  const auto requests = server.requests();
  ASSERT_GE(requests.size(), 3U);
  EXPECT_EQ(requests[0].header("range"), "");
  EXPECT_EQ(requests[1].header("range"), "bytes=30000-");
  EXPECT_EQ(requests[1].header("if-range"), "\"v1\"");
  EXPECT_EQ(requests[2].header("range"), "bytes=90000-");
}

TEST_F(DownloadTest, GoesOnInALaterRun) {
  bool cut = true;
  const TestServer server([&](const TestRequest& request) {
    TestReply reply = serve_file(request, file_, "\"v1\"");
    if (cut) reply.send = request.header("range").empty() ? 12345 : 0;
    return reply;
  });
  test::expect_error_naming(ErrorCode::io, {"goes on from here"}, [&] { fetch(server); });
  EXPECT_THAT(names(), ElementsAre("model.gguf.%22v1%22.part"));
  cut = false;
  fetch(server);
  expect_complete();
  EXPECT_EQ(server.requests().back().header("range"), "bytes=12345-");
}

TEST_F(DownloadTest, StartsOverWhereTheFileChanged) {
  const std::string other = test::small_gguf(40000, 2);
  bool first = true;
  const TestServer server([&](const TestRequest& request) {
    TestReply reply = serve_file(request, first ? other : file_, first ? "\"v1\"" : "\"v2\"");
    if (first) reply.send = 12345;
    first = false;
    return reply;
  });
  fetch(server);
  expect_complete();
}

TEST_F(DownloadTest, StartsOverWhereTheServerIgnoresRanges) {
  bool first = true;
  const TestServer server([&](const TestRequest&) {
    TestReply reply{.headers = {{"ETag", "\"v1\""}}, .body = file_};
    if (std::exchange(first, false)) reply.send = 12345;
    return reply;
  });
  fetch(server);
  expect_complete();
  EXPECT_EQ(server.requests().size(), 2U);
}

TEST_F(DownloadTest, StartsOverWhereAnotherPartComes) {
  int request_number = 0;
  const TestServer server([&](const TestRequest& request) {
    TestReply reply = serve_file(request, file_, "\"v1\"");
    ++request_number;
    if (request_number == 1) reply.send = 12345;
    if (request_number == 2) {  // an answer to a request for something else
      reply.headers.back().second = "bytes 5-199/200";
      reply.body = file_.substr(5);
    }
    return reply;
  });
  fetch(server);
  expect_complete();
  EXPECT_EQ(server.requests().back().header("range"), "");
}

TEST_F(DownloadTest, StartsOverWhereAResumedFileHasTheWrongChecksum) {
  const std::string other = test::small_gguf(50000, 2);
  bool first = true;
  const TestServer server([&](const TestRequest& request) {  // the same ETag for two files
    TestReply reply = serve_file(request, first ? other : file_, "\"v1\"");
    if (std::exchange(first, false)) reply.send = 12345;
    return reply;
  });
  EXPECT_TRUE(fetch(server, {.sha256 = sum_}).verified);
  expect_complete();
  EXPECT_EQ(server.requests().size(), 3U);
}

TEST_F(DownloadTest, ResumesByDateAndWithoutValidatorOnlyUnderAChecksum) {
  std::string date = "Thu, 01 Jan 2026 00:00:00 GMT";
  bool cut = true;
  const TestServer server([&](const TestRequest& request) {
    TestReply reply = serve_file(request, file_, date);
    reply.headers[0].first = date.empty() ? "X-Nothing" : "Last-Modified";
    if (std::exchange(cut, false)) reply.send = 12345;
    return reply;
  });
  fetch(server);
  expect_complete();
  EXPECT_EQ(server.requests()[1].header("if-range"), date);
  date.clear();
  cut = true;
  fetch(server);
  EXPECT_EQ(server.requests().back().header("range"), "");
  cut = true;
  fetch(server, {.sha256 = sum_});
  EXPECT_EQ(server.requests().back().header("range"), "bytes=12345-");
  expect_complete();
}

TEST_F(DownloadTest, KeepsNothingOfAFileThatIsNotTheOneWanted) {
  std::string etag = "\"v1\"";
  const TestServer server(
      [&](const TestRequest& request) { return serve_file(request, file_, etag); });
  const std::string wrong = sha256_of("something else");
  expect_refusal(server, ErrorCode::invalid_file, {"SHA-256", sum_, wrong}, {.sha256 = wrong});
  etag =
      "\"" + wrong + "\"";  // what the hub states is binding, what another server calls a file not
  expect_refusal(server, ErrorCode::invalid_file, {"SHA-256", sum_, wrong}, {.hub = true});
  fetch(server);
  expect_complete();
}

TEST_F(DownloadTest, RefusesWhatIsNotGguf) {
  std::string body = "<!DOCTYPE html><html>Sign in</html>";
  const TestServer server([&](const TestRequest&) { return TestReply{.body = body}; });
  expect_refusal(server, ErrorCode::invalid_file, {"/model.gguf", "a web page"});
  body = "PK\x03\x04";
  expect_refusal(server, ErrorCode::invalid_file, {"not a GGUF file"});
  body = "";
  expect_refusal(server, ErrorCode::invalid_file, {"/model.gguf"});
  EXPECT_EQ(server.requests().size(), 3U);
}

TEST_F(DownloadTest, NoticesASizeThatIsALie) {
  std::size_t announced = file_.size() - 1000;
  const TestServer server(
      [&](const TestRequest&) { return TestReply{.body = file_, .announced = announced}; });
  // Less than there is: what comes is a file cut short.
  expect_refusal(server, ErrorCode::invalid_file, {"/model.gguf"});
  // More: the rest is asked for again and never comes.
  announced = file_.size() + 1000;
  test::expect_error_naming(ErrorCode::io, {"/model.gguf"}, [&] { fetch(server); });
  for (const std::string& name : names()) EXPECT_THAT(name, ::testing::EndsWith(".part"));
}

TEST_F(DownloadTest, BelievesTheHubAboutTheSize) {
  const TestServer server([&](const TestRequest&) {
    return TestReply{.headers = {{"X-Linked-Size", "1000"}}, .body = file_};
  });
  expect_refusal(server, ErrorCode::invalid_file, {"1000 bytes"}, {.hub = true});
}

TEST_F(DownloadTest, SaysWhatTheServerRefuses) {
  int status = 404;
  const TestServer server(
      [&](const TestRequest&) { return TestReply{.status = status, .body = "no"}; });
  expect_refusal(server, ErrorCode::io, {"/model.gguf", "404"});
  status = 401;
  expect_refusal(server, ErrorCode::io, {"401", "set HF_TOKEN"}, {.hub = true});
  expect_refusal(server, ErrorCode::io, {"401", "the token in HF_TOKEN"},
                 {.hub = true, .token = "t"});
  expect_refusal(server, ErrorCode::io, {"401", "permission"});
  EXPECT_EQ(server.requests().size(), 4U);  // none of these is tried again
}

TEST_F(DownloadTest, TriesAgainWhatMayPass) {
  int status = 503;
  const TestServer server([&](const TestRequest& request) {
    if (status != 200) return TestReply{.status = std::exchange(status, 200), .body = "busy"};
    return serve_file(request, file_, "\"v1\"");
  });
  fetch(server);
  expect_complete();
}

TEST_F(DownloadTest, SaysWhatCannotBeReached) {
  const UnansweredPort nobody;
  const std::string url = nobody.url("/model.gguf");
  const TestServer other([](const TestRequest&) { return TestReply{}; });
  expect_refusal(other, ErrorCode::io, {url}, {.url = url});
  expect_refusal(other, ErrorCode::io, {"file:///etc/passwd"}, {.url = "file:///etc/passwd"});
}

TEST_F(DownloadTest, TheTokenDoesNotFollowARedirectToAnotherHost) {
  const TestServer storage(
      [&](const TestRequest& request) { return serve_file(request, file_, "\"elsewhere\""); });
  const TestServer hub([&](const TestRequest&) {
    return TestReply{.status = 302,
                     .headers = {{"Location", storage.url("/blob?signature=x")},
                                 {"X-Linked-Etag", "\"" + sum_ + "\""},
                                 {"X-Linked-Size", std::to_string(file_.size())}}};
  });
  EXPECT_TRUE(fetch(hub, {.hub = true, .token = "secret"}).verified);
  expect_complete();
  EXPECT_EQ(hub.requests()[0].header("authorization"), "Bearer secret");
  EXPECT_EQ(storage.requests()[0].header("authorization"), "");
}

TEST_F(DownloadTest, GoesThroughAProxy) {
  const TestServer proxy(
      [&](const TestRequest& request) { return serve_file(request, file_, "\"v1\""); });
  ::setenv("http_proxy", proxy.url("").c_str(), 1);
  fetch(proxy, {.url = "http://models.invalid/model.gguf"});
  ::unsetenv("http_proxy");
  expect_complete();
  EXPECT_EQ(proxy.requests()[0].target, "http://models.invalid/model.gguf");
}

TEST_F(DownloadTest, SaysThatTheDiskIsTooSmallBeforeItIsFull) {
  const TestServer server([&](const TestRequest&) {
    return TestReply{.body = file_, .announced = std::size_t{1} << 60};
  });
  test::expect_error_naming(ErrorCode::io, {"MB more are needed", "EDGERUNNER_CACHE"},
                            [&] { fetch(server); });
}

TEST_F(DownloadTest, OneProcessAtATimeFetchesAFile) {
  const TestServer server(
      [&](const TestRequest& request) { return serve_file(request, file_, "\"v1\""); });
  const TestServer other(
      [&](const TestRequest& request) { return serve_file(request, file_, "\"v1\""); });
  bool tried = false;
  DownloadOptions options;
  options.on_progress = [&](const DownloadProgress& progress) {
    if (progress.received == 0 || std::exchange(tried, true)) return;
    test::expect_error_naming(ErrorCode::io, {"another process"}, [&] { fetch(other); });
  };
  download({.url = server.url("/model.gguf"), .target = target_}, options);
  EXPECT_TRUE(tried);
  expect_complete();
}

TEST_F(DownloadTest, StopsOnRequestAndKeepsWhatItHas) {
  std::stop_source stop;
  const TestServer server([&](const TestRequest& request) {
    TestReply reply = serve_file(request, file_, "\"v1\"");
    reply.send = 12345;
    reply.hold = true;
    return reply;
  });
  DownloadOptions options;
  options.stop = stop.get_token();
  options.on_progress = [&](const DownloadProgress& progress) {
    if (progress.received == 12345) stop.request_stop();
  };
  test::expect_error_naming(ErrorCode::cancelled, {"goes on from here"}, [&] {
    download({.url = server.url("/model.gguf"), .target = target_}, options);
  });
  EXPECT_EQ(std::filesystem::file_size(folder_ / "sub/model.gguf.%22v1%22.part"), 12345U);
}

}  // namespace
}  // namespace edgerunner::hub
