#include "cli/logit_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "edgerunner/error.h"

namespace edgerunner::cli {
namespace {

constexpr std::array<char, 8> kMagic = {'E', 'D', 'G', 'E', 'L', 'O', 'G', '1'};

// magic, vocabulary, window, stride, number of tokens
constexpr std::size_t kHeaderNumbers = 4;
constexpr std::size_t kHeaderBytes = kMagic.size() + kHeaderNumbers * sizeof(std::uint64_t);

std::array<std::uint64_t, kHeaderNumbers> numbers_of(const LogitFileHeader& header) {
  return {header.vocab_size, header.window, header.stride, header.tokens.size()};
}

[[noreturn]] void refuse(const std::string& path, std::string_view why) {
  throw Error(ErrorCode::invalid_file, fmt::format("{}: {}", path, why));
}

}  // namespace

LogitFileWriter::LogitFileWriter(const std::string& path, const LogitFileHeader& header)
    : file_(path) {
  file_.write(std::as_bytes(std::span(kMagic)));
  const auto numbers = numbers_of(header);
  file_.write(std::as_bytes(std::span(numbers)));
  file_.write(std::as_bytes(std::span(header.tokens)));
}

LogitFileReader::LogitFileReader(const std::string& path, const LogitFileHeader& expected)
    : file_(path), row_(expected.vocab_size) {
  const std::span<const std::byte> bytes = file_.bytes();
  if (bytes.size() < kHeaderBytes || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    refuse(path, "not a file of logits that perplexity --save-logits wrote");
  }
  std::array<std::uint64_t, kHeaderNumbers> found{};
  std::memcpy(found.data(), bytes.data() + kMagic.size(), sizeof found);
  const auto wanted = numbers_of(expected);
  constexpr std::array<std::string_view, kHeaderNumbers> kNames = {"vocabulary", "--window",
                                                                   "--stride", "number of tokens"};
  for (std::size_t i = 0; i < kHeaderNumbers; ++i) {
    if (found[i] == wanted[i]) continue;
    refuse(path, fmt::format("its logits were saved with another {} ({}, here {})", kNames[i],
                             found[i], wanted[i]));
  }
  const std::size_t token_bytes = expected.tokens.size() * sizeof(TokenId);
  offset_ = kHeaderBytes + token_bytes;
  const std::uint64_t rows = std::max<std::uint64_t>(expected.tokens.size(), 1) - 1;
  if (bytes.size() != offset_ + rows * row_.size() * sizeof(float)) {
    refuse(path, "it is cut off or longer than its header says; save the logits again");
  }
  if (std::memcmp(bytes.data() + kHeaderBytes, expected.tokens.data(), token_bytes) != 0) {
    refuse(path, "its logits were saved for another text or tokenizer");
  }
}

std::span<const float> LogitFileReader::logits(std::size_t index) {
  const std::size_t bytes = row_.size() * sizeof(float);
  std::memcpy(row_.data(), file_.bytes().data() + offset_ + (index - 1) * bytes, bytes);
  return row_;
}

}  // namespace edgerunner::cli
