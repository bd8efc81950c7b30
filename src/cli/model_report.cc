#include "cli/model_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "arch/decoder.h"
#include "backend/executor.h"
#include "base/cpu_features.h"
#include "edgerunner/error.h"
#include "gguf/file.h"
#include "runtime/adapter_shelf.h"
#include "runtime/backend.h"
#include "runtime/memory_plan.h"
#include "runtime/plan_input.h"
#include "tensor/element_type.h"

namespace edgerunner::cli {
namespace {

// A report must not fail on a key of a wrong type: whoever runs the model is told about it.
std::optional<std::uint64_t> find_uint(const gguf::File& file, const std::string& key) {
  try {
    return file.get_uint(key);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string find_string(const gguf::File& file, std::string_view key) {
  try {
    return std::string(file.get_string(key).value_or(""));
  } catch (const Error&) {
    return {};
  }
}

std::vector<std::pair<std::string, std::uint64_t>> read_config(const gguf::File& file,
                                                               const std::string& architecture) {
  constexpr std::array kKeys = std::to_array<std::string_view>({
      "context_length",
      "embedding_length",
      "block_count",
      "feed_forward_length",
      "attention.head_count",
      "attention.head_count_kv",
      "attention.key_length",
      "attention.sliding_window",
      "rope.dimension_count",
      "vocab_size",
      "expert_count",
      "expert_used_count",
  });
  std::vector<std::pair<std::string, std::uint64_t>> config;
  for (const std::string_view key : kKeys) {
    const auto value = find_uint(file, fmt::format("{}.{}", architecture, key));
    if (value) config.emplace_back(key, *value);
  }
  return config;
}

std::vector<TensorGroup> group_tensors(const gguf::File& file) {
  std::map<ElementType, TensorGroup> groups;
  for (const gguf::Tensor& tensor : file.tensors()) {
    TensorGroup& group = groups[tensor.type];
    group.type = traits(tensor.type).name;
    ++group.count;
    group.elements += tensor.elements();
    group.bytes += tensor.data.size();
  }
  std::vector<TensorGroup> sorted;
  sorted.reserve(groups.size());
  for (const auto& [type, group] : groups) sorted.push_back(group);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const TensorGroup& a, const TensorGroup& b) { return a.bytes > b.bytes; });
  return sorted;
}

std::optional<TokenizerReport> read_tokenizer(const gguf::File& file) {
  const gguf::Value* tokens = file.find("tokenizer.ggml.tokens");
  if (tokens == nullptr) return std::nullopt;
  return TokenizerReport{
      .model = find_string(file, "tokenizer.ggml.model"),
      .pre_tokenizer = find_string(file, "tokenizer.ggml.pre"),
      .tokens = tokens->count,
      .bos = find_uint(file, "tokenizer.ggml.bos_token_id"),
      .eos = find_uint(file, "tokenizer.ggml.eos_token_id"),
  };
}

std::optional<AdapterReport> read_adapter(const gguf::File& file) {
  if (find_string(file, "general.type") != "adapter") return std::nullopt;
  AdapterReport report;
  report.type = find_string(file, "adapter.type");
  try {
    report.alpha = file.get_float("adapter.lora.alpha");
  } catch (const Error&) {
    report.alpha.reset();
  }
  for (const gguf::Tensor& tensor : file.tensors()) {
    if (!tensor.name.ends_with(".lora_b")) continue;
    const std::uint64_t rank = tensor.shape[0];
    report.least_rank = report.matrices == 0 ? rank : std::min(report.least_rank, rank);
    report.largest_rank = std::max(report.largest_rank, rank);
    ++report.matrices;
  }
  return report;
}

std::vector<MemoryLine> memory_lines(ModelOptions options, const Backend& backend,
                                     const DecoderSpec& spec, const MemoryPlanInput& input) {
  std::vector<std::uint32_t> contexts = {512, 2048, 8192, 32768};
  std::erase_if(contexts, [&](std::uint32_t context) { return context > spec.context_length; });
  contexts.push_back(options.context != 0 ? options.context : spec.context_length);
  std::sort(contexts.begin(), contexts.end());
  contexts.erase(std::unique(contexts.begin(), contexts.end()), contexts.end());

  std::vector<MemoryLine> lines;
  lines.reserve(contexts.size());
  for (const std::uint32_t context : contexts) {
    options.context = context;
    MemoryPlan plan = plan_context(options, input);
    MemoryLine& line = lines.emplace_back();
    line.context = context;
    line.kv = name(plan.executor.kv);
    line.weights_bytes = plan.weights_bytes;
    line.cache_bytes = plan.cache_bytes;
    line.scratch_bytes = plan.scratch_bytes;
    for (const KvPrecision kv : {KvPrecision::f32, KvPrecision::f16, KvPrecision::q8}) {
      plan.executor.kv = kv;
      try {
        line.cache_bytes_by_kv.emplace_back(name(kv),
                                            backend.need(spec, plan.executor).cache_bytes);
      } catch (const Error&) {
        continue;  // a precision that this backend doesn't keep
      }
    }
  }
  return lines;
}

}  // namespace

ModelReport make_model_report(const ModelArguments& arguments) {
  ModelOptions options = arguments.options();
  if (options.threads == 0) options.threads = available_cores();
  const gguf::File file = gguf::File::open(arguments.path);

  ModelReport report;
  report.path = arguments.path;
  report.bytes = file.bytes();
  report.gguf_version = file.version();
  report.shards = file.shard_count();
  report.architecture = find_string(file, "general.architecture");
  report.name = find_string(file, "general.name");
  report.config = read_config(file, report.architecture);
  report.tensors = group_tensors(file);
  for (const TensorGroup& group : report.tensors) report.parameters += group.elements;
  report.tokenizer = read_tokenizer(file);
  report.backend = arguments.backend;
  report.threads = options.backend == BackendKind::reference ? 1 : options.threads;
  if (options.backend == BackendKind::cpu) report.isa = name(chosen_isa());
  report.adapter = read_adapter(file);
  if (report.adapter) {
    report.refusal = "it is an adapter; give it by --lora, together with its model";
  } else if (file.tensors().empty()) {
    report.refusal = "it holds a vocabulary and no tensors";
  } else {
    try {
      const Decoder decoder = read_decoder(file);
      AdapterShelf adapters;
      adapters.load(options.adapters, decoder);
      report.adapters = adapters.info();
      const Backend backend = find_backend(options.backend);
      const MemoryPlanInput input = plan_input(options, backend, file, decoder, adapters);
      report.memory = memory_lines(options, backend, decoder.spec, input);
      if (options.backend == BackendKind::cpu) {
        if (options.context == 0) options.context = decoder.spec.context_length;
        report.kernels = cpu_executor_info(decoder, plan_context(options, input).executor).kernels;
      }
    } catch (const Error& error) {
      report.refusal = error.what();
    }
  }
  return report;
}

}  // namespace edgerunner::cli
