#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <chrono>
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
constexpr double kLimit = 2.0;  // seconds; a build with sanitizers may take longer

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

std::string repeated(std::string_view unit) {
  std::string text;
  while (text.size() < kBytes) text += unit;
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

void expect_fast(const Tokenizer& tokenizer, std::string_view name) {
  for (const char* unit : {"Z", " ", "\n", "漢", "us", "é", "e\xCC\x81", "\xCC\x81\xCC\xA3", "\xFF",
                           " \n", "Zz", "1", "'", "\t", "<s", "👩‍🚀"}) {
    const std::string text = repeated(unit);
    double seconds = 0;
    std::string decoded;
    run_on_small_stack([&] {
      const auto start = std::chrono::steady_clock::now();
      const auto ids = tokenizer.encode(text, {.add_special = false, .parse_special = true});
      seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      decoded = tokenizer.decode(ids, true);
    });
    fmt::print("{}: 1 MB of {}: {:.3f} s\n", name, printable(unit), seconds);
    if (kTimed) {
      EXPECT_LT(seconds, kLimit) << name << ": " << unit;
    }
    // Normalisation puts other marks in the text's place.
    if (std::string_view(unit).find('\xCC') == std::string_view::npos) {
      EXPECT_EQ(decoded, text) << name << ": " << unit;
    }
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

}  // namespace
}  // namespace edgerunner
