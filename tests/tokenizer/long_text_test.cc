#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "gguf/file.h"
#include "support/shared_data.h"
#include "tokenizer/load.h"
#include "tokenizer/vocabulary_file.h"

// A megabyte of the same again is one word to most pre-tokenizers: the worst case for backtracking
// and for merging, on a thread that has little stack.

namespace edgerunner {
namespace {

constexpr std::size_t kBytes = 1'000'000;
// Of a text eight times as long, the work may be so many times as much: 8 where it grows with the
// length, up to 16 where the caches no longer hold it, 64 where it grows with the length's square.
constexpr std::size_t kLonger = 8;
constexpr double kMostGrowth = 32;
constexpr double kSoon = 0.05;  // seconds, in which growth doesn't matter

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kTimed = false;
#elif defined(__has_feature)
constexpr bool kTimed = !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer);
#else
constexpr bool kTimed = true;
#endif

void run_on_small_stack(const std::function<void()>& work) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, std::size_t{256} << 10), 0);
  pthread_t thread{};
  const auto start = [](void* argument) -> void* {
    (*static_cast<const std::function<void()>*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, start,
                           const_cast<void*>(static_cast<const void*>(&work))),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

// Of this thread alone, however long it waited for a core.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

std::string repeated(std::string_view unit, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += unit;
  return text;
}

std::string printable(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    const bool plain = byte > ' ' && byte <= '~';
    text +=
        plain ? std::string(1, byte) : fmt::format("\\x{:02X}", static_cast<unsigned char>(byte));
  }
  return text;
}

struct Encoded {
  std::string decoded;  // what the ids give back
  double work = 0;      // seconds that encoding took
};

Encoded encode(const Tokenizer& tokenizer, const std::string& text) {
  Encoded result;
  run_on_small_stack([&] {
    const double start = cpu_seconds();
    const auto ids = tokenizer.encode(text, {.add_special = false, .parse_special = true});
    result.work = cpu_seconds() - start;
    result.decoded = tokenizer.decode(ids, true);
  });
  return result;
}

// `lossless`: decoding gives the text back.
void expect_fast(const Tokenizer& tokenizer, std::string_view name, bool lossless = true) {
  for (const char* unit : {"Z", " ", "\n", "漢", "us", "é", "e\xCC\x81", "\xCC\x81\xCC\xA3", "\xFF",
                           " \n", "Zz", "1", "'", "\t", "<s", "👩‍🚀"}) {
    const std::string text = repeated(unit, kBytes);
    const std::string shorter = repeated(unit, kBytes / kLonger);
    const Encoded encoded = encode(tokenizer, text);
    // Normalisation puts other marks in the text's place.
    if (lossless && std::string_view(unit).find('\xCC') == std::string_view::npos) {
      EXPECT_EQ(encoded.decoded, text) << name << ": " << unit;
    }
    if (!kTimed || encoded.work < kSoon) continue;
    double growth = encoded.work / encode(tokenizer, shorter).work;
    fmt::print("{}: 1 MB of {}: {:.3f} s, {:.1f} times an eighth of it\n", name, printable(unit),
               encoded.work, growth);
    for (int again = 0; again < 3 && growth > kMostGrowth; ++again) {
      growth = encode(tokenizer, text).work / encode(tokenizer, shorter).work;
    }
    EXPECT_LT(growth, kMostGrowth) << name << ": " << unit;
  }
}

class LongText : public testing::TestWithParam<const char*> {};

TEST_P(LongText, IsEncodedInTimeOnASmallStack) {
  EDGERUNNER_REQUIRE_SHARED_DATA();
  const auto file = gguf::File::open(test::shared_dir() / "tokenizers" / GetParam() / "vocab.gguf");
  expect_fast(*load_tokenizer(file), GetParam());
}

INSTANTIATE_TEST_SUITE_P(SlowVocabularies, LongText,
                         testing::Values("llama3.1", "qwen3", "deepseek-v3", "gpt2", "gemma3",
                                         "llama2", "mistral-v1", "mistral-v3", "tekken"),
                         [](const auto& name) {
                           std::string result = name.param;
                           std::erase_if(result, [](char c) { return c == '-' || c == '.'; });
                           return result;
                         });

class LongTextSmallVocabulary : public testing::TestWithParam<const char*> {};

TEST_P(LongTextSmallVocabulary, IsEncodedInTimeOnASmallStack) {
  const auto file = test::byte_level(
      GetParam(), {"Z Z", "ZZ ZZ", "u s", "us us", "Ġ Ġ", "ĠĠ ĠĠ", "Ċ Ċ", "Z z", "Zz Zz"});
  expect_fast(*file.load(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(SlowPreTokenizers, LongTextSmallVocabulary,
                         testing::Values("gpt-2", "smollm", "llama-bpe", "qwen2", "tekken",
                                         "deepseek-llm", "deepseek-coder", "deepseek-v3",
                                         "default"),
                         [](const auto& name) {
                           std::string result = name.param;
                           std::erase(result, '-');
                           return result;
                         });

class LongTextNormalized : public testing::TestWithParam<const char*> {};

TEST_P(LongTextNormalized, IsEncodedInTimeOnASmallStack) {
  const std::filesystem::path folder = EDGERUNNER_TESTS_DIR "/tokenizer/vocabularies";
  const auto file = gguf::File::open(folder / fmt::format("{}.gguf", GetParam()));
  expect_fast(*load_tokenizer(file), GetParam(), false);
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, LongTextNormalized,
                         testing::Values("t5", "unigram-bytes", "bert-uncased", "bert-cased"),
                         [](const auto& name) {
                           std::string result = name.param;
                           std::erase(result, '-');
                           return result;
                         });

// Every token reaches over the one before it, so that nothing can be cut.
TEST(LongText, OfOverlappingUnigramsIsEncodedInTimeOnASmallStack) {
  test::VocabularyFile file = test::unigram({{"Z", -1}, {"us", -1}, {"su", -1}, {"usus", -2}});
  for (std::size_t length = 2; length < 40; ++length) {
    file.add(std::string(length, 'Z'), 1, -1.0F - static_cast<float>(length % 7));
  }
  expect_fast(*file.load(), "overlapping unigrams", false);
}

}  // namespace
}  // namespace edgerunner
