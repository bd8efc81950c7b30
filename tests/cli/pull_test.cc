#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <thread>

#include "../hub/test_server.h"
#include "program_test.h"

namespace edgerunner::test {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A hub with the tiny model as owner/repo/tiny.gguf, and two files as the shards of owner/split.
class PullTest : public ProgramTest {
 protected:
  PullTest() : file_(read(model_)) {
    ::setenv("HF_ENDPOINT", server_.url("").c_str(), 1);
    ::setenv("EDGERUNNER_CACHE", cache().c_str(), 1);
    ::setenv("no_proxy", "127.0.0.1", 1);
    ::unsetenv("HF_TOKEN");
  }
  ~PullTest() override {
    for (const char* name : {"HF_ENDPOINT", "EDGERUNNER_CACHE", "HF_TOKEN"}) ::unsetenv(name);
  }

  std::string cache() const { return folder_ / "cache"; }
  std::filesystem::path fetched() const { return cache() + "/models/hf/owner/repo/tiny.gguf"; }
  static std::string read(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // All files below the folder of models.
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(cache())) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    return files;
  }

  TestReply answer(const TestRequest& request) const {
    if (request.target.find("/split/") != std::string::npos) {
      return serve_file(request,
                        request.target.find("-00001-") != std::string::npos ? file_ : other_,
                        "\"split\"");
    }
    if (request.target != "/owner/repo/resolve/main/tiny.gguf") {
      return {.status = 404, .body = "Entry not found"};
    }
    if (!token_.empty() && request.header("authorization") != "Bearer " + token_) {
      return {.status = 401, .body = "Access restricted"};
    }
    TestReply reply = serve_file(request, file_, "\"v1\"");
    if (stop_after_) {
      reply.send = *stop_after_;
      reply.hold = true;
    }
    return reply;
  }

  std::string file_;
  std::string other_ = small_gguf(100);
  std::string token_;
  std::optional<std::size_t> stop_after_;
  TestServer server_{[this](const TestRequest& request) { return answer(request); }};
};

TEST_F(PullTest, FetchesAModelThatEveryCommandThenKnowsByItsName) {
  const std::string name = "hf:owner/repo/tiny.gguf";
  expect_refusal(run_program({"info", name}), 1, {name, "edgerunner pull"});
  const ProgramRun run = run_program({"pull", name});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, fetched().string() + "\n");
  EXPECT_EQ(run.err.find('\r'), std::string::npos) << "progress, where there is no terminal";
  EXPECT_EQ(read(fetched()), file_);
  EXPECT_EQ(run_json({"info", name, "--json"})["path"], fetched().string());
  EXPECT_EQ(run_json({"tokenize", name, "--text", "he", "--json"})["ids"], json::array({kTinyHe}));
  const ProgramRun quantized = run_program({"quantize", name, folder_ / "out.gguf", "F16"});
  EXPECT_EQ(quantized.status, 0) << quantized.err;
}

TEST_F(PullTest, SaysInJsonWhatWasFetchedAndWhatWasThere) {
  const json first = run_json({"pull", "hf:owner/repo/tiny.gguf", "--json"});
  EXPECT_EQ(first["path"], fetched().string());
  const json& file = first["files"][0];
  EXPECT_EQ(file["bytes"], file_.size());
  EXPECT_EQ(file["fetched"], true);
  EXPECT_EQ(file["verified"], false);
  const std::string sum = file["sha256"];
  const json again = run_json({"pull", "hf:owner/repo/tiny.gguf", "--sha256", sum, "--json"});
  EXPECT_EQ(again["files"][0]["fetched"], false);
  EXPECT_EQ(again["files"][0]["verified"], true);
  EXPECT_EQ(server_.requests().size(), 1U);
  std::ofstream(fetched()) << "damaged";
  const json mended = run_json({"pull", "hf:owner/repo/tiny.gguf", "--sha256", sum, "--json"});
  EXPECT_EQ(mended["files"][0]["fetched"], true);
  EXPECT_EQ(mended["files"][0]["verified"], true);
  EXPECT_EQ(read(fetched()), file_);
}

TEST_F(PullTest, ListsAndRemovesWhatWasFetched) {
  EXPECT_EQ(run_json({"list", "--json"})["models"], json::array());
  run_program({"pull", "hf:owner/repo/tiny.gguf"});
  run_program({"pull", "hf:owner/split/m-00002-of-00002.gguf"});
  const json models = run_json({"list", "--json"})["models"];
  ASSERT_EQ(models.size(), 2U);
  EXPECT_EQ(models[0]["name"], "hf:owner/repo/tiny.gguf");
  EXPECT_EQ(models[0]["bytes"], file_.size());
  EXPECT_EQ(models[1]["name"], "hf:owner/split/m-00001-of-00002.gguf");
  EXPECT_EQ(models[1]["files"].size(), 2U);
  EXPECT_EQ(models[1]["complete"], true);
  EXPECT_THAT(run_program({"list"}).out, HasSubstr("hf:owner/repo/tiny.gguf"));
  expect_refusal(run_program({"rm", "hf:owner/repo/tiny.gguf", "nothing"}), 1, {"nothing"});
  EXPECT_TRUE(std::filesystem::exists(fetched()));
  const json removed =
      run_json({"rm", "hf:owner/repo/tiny.gguf", models[1]["path"].get<std::string>(), "--json"});
  EXPECT_EQ(removed["removed"].size(), 2U);
  EXPECT_TRUE(files().empty());
  expect_refusal(run_program({"rm", model_}), 1, {model_});  // not fetched, so not ours to remove
  EXPECT_TRUE(std::filesystem::exists(model_));
}

TEST_F(PullTest, NamesWhatIsWrongWithTheCommandLine) {
  expect_refusal(run_program({"pull", "no-such-model"}), 2, {"no-such-model", "qwen3-0.6b"});
  expect_refusal(run_program({"pull", "smollm2-135m", "--sha256", "abc"}), 2, {"--sha256", "abc"});
  expect_refusal(run_program({"pull", "hf:owner/tiny.gguf"}), 1, {"hf:OWNER/REPO/FILE.gguf"});
  EXPECT_THAT(run_program({"list", "--known"}).out, HasSubstr("smollm2-135m"));
}

TEST_F(PullTest, SendsTheTokenWhereItIsAskedFor) {
  token_ = "secret";
  expect_refusal(run_program({"pull", "hf:owner/repo/tiny.gguf"}), 1, {"401", "HF_TOKEN"});
  ::setenv("HF_TOKEN", "secret", 1);
  EXPECT_EQ(run_program({"pull", "hf:owner/repo/tiny.gguf"}).status, 0);
  // Another server gets no token, whatever it asks for.
  const TestServer other([&](const TestRequest& request) {
    EXPECT_EQ(request.header("authorization"), "");
    return TestReply{.status = 401};
  });
  expect_refusal(run_program({"pull", other.url("/tiny.gguf")}), 1, {"401"});
  expect_refusal(run_program({"pull", "hf:owner/repo/none.gguf"}), 1, {"404", "none.gguf"});
}

TEST_F(PullTest, LeavesOnlyAPartWhereverItIsKilledAndGoesOnFromThere) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{5}, std::size_t{4096},
                                  file_.size() / 2, file_.size() - 1}) {
    SCOPED_TRACE(bytes);
    std::filesystem::remove_all(cache());
    stop_after_ = bytes;
    std::string program = EDGERUNNER_PROGRAM;
    std::string command = "pull";
    std::string name = "hf:owner/repo/tiny.gguf";
    const std::array<char*, 4> argv = {program.data(), command.data(), name.data(), nullptr};
    pid_t child = 0;
    ASSERT_EQ(::posix_spawn(&child, program.c_str(), nullptr, nullptr, argv.data(), environ), 0);
    const std::filesystem::path part = fetched().string() + ".%22v1%22.part";
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    std::error_code not_yet;
    while ((!std::filesystem::exists(part) || std::filesystem::file_size(part, not_yet) < bytes) &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    EXPECT_THAT(files(), ElementsAre(part));
    EXPECT_EQ(std::filesystem::file_size(part), bytes);

    stop_after_.reset();
    const ProgramRun rerun = run_program({"pull", name});
    EXPECT_EQ(rerun.status, 0) << rerun.err;
    EXPECT_THAT(files(), ElementsAre(fetched()));
    EXPECT_EQ(read(fetched()), file_);
    const std::string range = bytes == 0 ? "" : "bytes=" + std::to_string(bytes) + "-";
    EXPECT_EQ(server_.requests().back().header("range"), range);
  }
}

}  // namespace
}  // namespace edgerunner::test
