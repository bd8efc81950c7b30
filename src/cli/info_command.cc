#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/model_report.h"
#include "cli/output.h"

namespace edgerunner::cli {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json to_json(const ModelReport& report) {
  Json document = {
      {"path", report.path},
      {"bytes", report.bytes},
      {"gguf_version", report.gguf_version},
      {"shards", report.shards},
      {"architecture", report.architecture},
      {"name", report.name},
      {"supported", report.refusal.empty()},
      {"refusal", report.refusal.empty() ? Json(nullptr) : Json(report.refusal)},
      {"parameters", report.parameters},
      {"config", Json::object()},
      {"tensors", Json::array()},
      {"memory", Json::array()},
      {"tokenizer", nullptr},
      {"adapter", nullptr},
      {"adapters", Json::array()},
      {"backend", report.backend},
      {"isa", report.isa},
      {"threads", report.threads},
      {"kernels", report.kernels},
  };
  for (const auto& [key, value] : report.config) document["config"][key] = value;
  for (const TensorGroup& group : report.tensors) {
    document["tensors"].push_back({{"type", group.type},
                                   {"count", group.count},
                                   {"elements", group.elements},
                                   {"bytes", group.bytes}});
  }
  for (const MemoryLine& line : report.memory) {
    Json by_kv = Json::object();
    for (const auto& [kv, bytes] : line.cache_bytes_by_kv) by_kv[kv] = bytes;
    document["memory"].push_back(
        {{"context", line.context},
         {"kv", line.kv},
         {"cache_bytes_by_kv", by_kv},
         {"weights_bytes", line.weights_bytes},
         {"cache_bytes", line.cache_bytes},
         {"scratch_bytes", line.scratch_bytes},
         {"total_bytes", line.weights_bytes + line.cache_bytes + line.scratch_bytes}});
  }
  if (report.adapter) {
    document["adapter"] = {{"type", report.adapter->type},
                           {"alpha", optional_json(report.adapter->alpha)},
                           {"matrices", report.adapter->matrices},
                           {"least_rank", report.adapter->least_rank},
                           {"largest_rank", report.adapter->largest_rank}};
  }
  for (const AdapterInfo& adapter : report.adapters) {
    document["adapters"].push_back({{"id", adapter.id},
                                    {"path", adapter.path},
                                    {"name", adapter.name},
                                    {"scale", adapter.scale},
                                    {"alpha", adapter.alpha},
                                    {"rank", adapter.rank}});
  }
  if (report.tokenizer) {
    document["tokenizer"] = {{"model", report.tokenizer->model},
                             {"pre", report.tokenizer->pre_tokenizer},
                             {"tokens", report.tokenizer->tokens},
                             {"bos", optional_json(report.tokenizer->bos)},
                             {"eos", optional_json(report.tokenizer->eos)}};
  }
  return document;
}

std::string megabytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

std::string to_text(const ModelReport& report) {
  std::string text;
  const auto line = [&](std::string_view label, std::string_view value) {
    text += fmt::format("{:<26}{}\n", label, value);
  };
  line("file", report.path);
  line("size",
       fmt::format("{} ({} bytes, GGUF version {}, {})", megabytes(report.bytes), report.bytes,
                   report.gguf_version,
                   report.shards == 1 ? "one file" : fmt::format("{} files", report.shards)));
  if (!report.name.empty()) line("name", report.name);
  line("architecture", report.architecture.empty() ? "not stated" : report.architecture);
  line("runs here", report.refusal.empty() ? "yes" : "no: " + report.refusal);
  line("parameters", fmt::format("{}", report.parameters));
  if (report.adapter) {
    const AdapterReport& adapter = *report.adapter;
    line("adapter", fmt::format("{} of {} matrices, rank {} to {}, alpha {}", adapter.type,
                                adapter.matrices, adapter.least_rank, adapter.largest_rank,
                                adapter.alpha ? fmt::format("{}", *adapter.alpha) : "not stated"));
  }
  for (const AdapterInfo& adapter : report.adapters) {
    line(fmt::format("adapter {}", adapter.id),
         fmt::format("{}, rank {}, alpha {}, scale {}", adapter.path, adapter.rank, adapter.alpha,
                     adapter.scale));
  }
  for (const auto& [key, value] : report.config) line(key, fmt::format("{}", value));
  if (report.tokenizer) {
    const TokenizerReport& tokenizer = *report.tokenizer;
    const auto id = [](const std::optional<std::uint64_t>& value) {
      return value ? fmt::format("{}", *value) : "none";
    };
    line("tokenizer",
         fmt::format("{}{}{}, {} tokens, BOS {}, EOS {}", tokenizer.model,
                     tokenizer.pre_tokenizer.empty() ? "" : " / ", tokenizer.pre_tokenizer,
                     tokenizer.tokens, id(tokenizer.bos), id(tokenizer.eos)));
  } else {
    line("tokenizer", "none");
  }
  for (const TensorGroup& group : report.tensors) {
    line(fmt::format("tensors {}", group.type),
         fmt::format("{}, {} elements, {}", group.count, group.elements, megabytes(group.bytes)));
  }
  for (const MemoryLine& memory : report.memory) {
    std::string others;
    for (const auto& [kv, bytes] : memory.cache_bytes_by_kv) {
      if (kv != memory.kv) others += fmt::format("; --kv {}: cache {}", kv, megabytes(bytes));
    }
    line(fmt::format("memory for {} tokens", memory.context),
         fmt::format("{} (weights {}, {} cache {}, scratch {}){}",
                     megabytes(memory.weights_bytes + memory.cache_bytes + memory.scratch_bytes),
                     megabytes(memory.weights_bytes), memory.kv, megabytes(memory.cache_bytes),
                     megabytes(memory.scratch_bytes), others));
  }
  line("backend", fmt::format("{}, {} {}", report.backend, report.threads,
                              report.threads == 1 ? "thread" : "threads"));
  if (!report.isa.empty()) line("instruction set", report.isa);
  for (const std::string& kernel : report.kernels) line("kernel", kernel);
  return text;
}

}  // namespace

void add_info_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "info", "What a file holds, the memory it needs, and the kernels chosen for it here");
  const auto arguments = std::make_shared<ModelArguments>();
  const auto json = std::make_shared<bool>(false);
  arguments->add_to(*command);
  command->add_flag("--json", *json, "Print one JSON document");
  command->callback([arguments, json] {
    const ModelReport report = make_model_report(*arguments);
    if (*json) {
      write_json(to_json(report));
    } else {
      write_output(to_text(report));
    }
  });
}

}  // namespace edgerunner::cli
