#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/options.h"

namespace edgerunner::cli {

struct TensorGroup {
  std::string type;
  std::uint64_t count = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
};

// What loading with a context of that many tokens takes, with a cache for one sequence.
struct MemoryLine {
  std::uint64_t context = 0;
  std::uint64_t weights_bytes = 0;
  std::string kv;                 // the cache precision that was asked for
  std::uint64_t cache_bytes = 0;  // of that
  std::vector<std::pair<std::string, std::uint64_t>> cache_bytes_by_kv;  // that the backend has
  std::uint64_t scratch_bytes = 0;
};

struct TokenizerReport {
  std::string model;
  std::string pre_tokenizer;
  std::uint64_t tokens = 0;
  std::optional<std::uint64_t> bos;
  std::optional<std::uint64_t> eos;
};

// Of a file that is an adapter and no model.
struct AdapterReport {
  std::string type;  // "lora"
  std::optional<double> alpha;
  std::uint64_t matrices = 0;  // that it changes
  std::uint64_t least_rank = 0;
  std::uint64_t largest_rank = 0;
};

// What `info` tells about a file and this machine. Read from the metadata and the tensor table
// alone: the weights are not touched and no tokenizer is built, so that any file answers at once.
struct ModelReport {
  std::string path;
  std::uint64_t bytes = 0;
  std::uint32_t gguf_version = 0;
  std::size_t shards = 1;
  std::string architecture;
  std::string name;
  std::string refusal;  // why it can't be run; empty where it can
  std::vector<std::pair<std::string, std::uint64_t>> config;  // what the metadata states, in order
  std::uint64_t parameters = 0;
  std::vector<TensorGroup> tensors;  // by type, the most bytes first
  std::vector<MemoryLine> memory;    // empty where it can't be run
  std::optional<TokenizerReport> tokenizer;
  std::optional<AdapterReport> adapter;
  std::vector<AdapterInfo> adapters;  // that were given for it
  std::string backend;
  std::string isa;
  int threads = 1;
  std::vector<std::string> kernels;
};

ModelReport make_model_report(const ModelArguments& arguments);

}  // namespace edgerunner::cli
