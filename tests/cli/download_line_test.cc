#include "cli/download_line.h"

#include <gmock/gmock.h>

namespace edgerunner::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(DownloadLineTest, ShowsPartSpeedAndTimeLeft) {
  DownloadLine line;
  const DownloadLine::Clock::time_point start{};
  EXPECT_EQ(line.update("m.gguf", 0, 400'000'000, start),
            "m.gguf [                ] 0 % of 400.0 MB");
  EXPECT_EQ(line.update("m.gguf", 50'000'000, 400'000'000, start + milliseconds(50)), std::nullopt);
  EXPECT_EQ(line.update("m.gguf", 100'000'000, 400'000'000, start + seconds(1)),
            "m.gguf [====            ] 25 % of 400.0 MB 100.0 MB/s 0:03");
  // Twice as slow from then on: the speed is that of the last five seconds.
  EXPECT_EQ(line.update("m.gguf", 350'000'000, 400'000'000, start + seconds(6)),
            "m.gguf [==============  ] 88 % of 400.0 MB 50.0 MB/s 0:01");
  EXPECT_EQ(line.update("m.gguf", 400'000'000, 400'000'000, start + seconds(7)),
            "m.gguf [================] 100 % of 400.0 MB 50.0 MB/s 0:00");
}

TEST(DownloadLineTest, DoesWithoutTheSize) {
  DownloadLine line;
  const DownloadLine::Clock::time_point start{};
  EXPECT_EQ(line.update("m.gguf", 500, std::nullopt, start), "m.gguf 500 B");
  EXPECT_EQ(line.update("m.gguf", 2500, std::nullopt, start + seconds(1)),
            "m.gguf 2.5 kB 2.0 kB/s");
}

TEST(DownloadLineTest, FitsIntoAnOrdinaryTerminal) {
  DownloadLine line;
  const DownloadLine::Clock::time_point start{};
  const std::string name(200, 'n');
  line.update(name, 0, 999'900'000'000'000, start);
  const auto text = line.update(name, 1, 999'900'000'000'000, start + seconds(1));
  ASSERT_TRUE(text);
  EXPECT_LE(text->size(), 80U) << *text;
}

}  // namespace
}  // namespace edgerunner::cli
