#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "base/output_file.h"
#include "edgerunner/types.h"

namespace edgerunner::cli {

// What the logits of a file belong to: they can be compared only where all of this is the same.
struct LogitFileHeader {
  std::uint32_t vocab_size = 0;
  std::uint64_t window = 0;
  std::uint64_t stride = 0;
  std::vector<TokenId> tokens;  // of the text
};

// `perplexity --save-logits`: the logits that predict every token of a text but the first, as f32
// in this machine's byte order. Appears complete or not at all.
class LogitFileWriter {
 public:
  LogitFileWriter(const std::string& path, const LogitFileHeader& header);
  void add(std::span<const float> logits) { file_.write(std::as_bytes(logits)); }
  void commit() { file_.commit(); }

 private:
  OutputFile file_;
};

// Reads such a file back. Throws Error(invalid_file) that names it and what doesn't match.
class LogitFileReader {
 public:
  LogitFileReader(const std::string& path, const LogitFileHeader& expected);
  // Of the token at `index`, 1 to tokens - 1: [vocab_size].
  std::span<const float> logits(std::size_t index);

 private:
  MappedFile file_;
  std::size_t offset_ = 0;
  std::vector<float> row_;
};

}  // namespace edgerunner::cli
