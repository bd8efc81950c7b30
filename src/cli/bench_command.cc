#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/bare_model.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/throughput.h"
#include "cli/usage_error.h"

namespace edgerunner::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint32_t kMostRepetitions = 1000;
constexpr std::uint32_t kMostSequences = 256;
constexpr std::uint32_t kMostDrafted = 255;

struct BenchArguments {
  ModelArguments model;
  std::optional<std::string> prompt;  // absent: the default list, as far as the context goes
  std::optional<std::string> depth;
  std::string sequences = "1";
  std::optional<std::string> drafted;
  std::uint32_t decode = 64;
  std::uint32_t repetitions = 3;
  bool json = false;
};

const char* kv_name(const ModelArguments& model) {
  const ModelOptions options = model.options();
  if (options.backend == BackendKind::reference) return "f64";
  return name(options.kv.value_or(default_kv(options.precision)));
}

struct Plan {
  std::vector<std::uint32_t> prompts;
  std::vector<std::uint32_t> depths;
  std::vector<std::uint32_t> sequences;
  std::vector<std::uint32_t> drafted;
  std::uint32_t longest = 0;         // tokens of the longest sequence
  std::uint32_t most_logits = 1;     // rows of a pass that want logits
  std::uint32_t most_sequences = 1;  // at once
};

Plan make_plan(const BenchArguments& arguments, std::uint32_t context) {
  Plan plan;
  if (!arguments.prompt) {
    for (const std::uint32_t tokens : {16U, 128U, 512U, 2048U}) {
      if (tokens <= context) plan.prompts.push_back(tokens);
    }
  } else if (*arguments.prompt != "none") {
    plan.prompts = parse_numbers(*arguments.prompt, "--prompt");
  }
  if (!arguments.depth) {
    for (const std::uint32_t depth : {0U, 2048U}) {
      if (std::uint64_t{depth} + arguments.decode <= context) plan.depths.push_back(depth);
    }
  } else if (*arguments.depth != "none") {
    plan.depths = parse_numbers(*arguments.depth, "--depth");
  }
  if (arguments.decode == 0) plan.depths.clear();
  plan.sequences = parse_numbers(arguments.sequences, "--sequences");
  for (const std::uint32_t count : plan.sequences) {
    if (count == 0 || count > kMostSequences) {
      throw UsageError(fmt::format("--sequences: {} is not from 1 to {}", count, kMostSequences));
    }
    plan.most_sequences = std::max(plan.most_sequences, count);
  }
  const auto longer = [&](std::uint64_t tokens) {
    // A sum past 32 bits is past every context too.
    const auto capped = static_cast<std::uint32_t>(std::min<std::uint64_t>(tokens, UINT32_MAX));
    plan.longest = std::max(plan.longest, capped);
  };
  for (const std::uint32_t tokens : plan.prompts) {
    if (tokens == 0) throw UsageError("--prompt: a prompt of 0 tokens can't be measured");
    longer(tokens);
  }
  for (const std::uint32_t depth : plan.depths) longer(std::uint64_t{depth} + arguments.decode);
  if (arguments.drafted) plan.drafted = parse_numbers(*arguments.drafted, "--draft-tokens");
  plan.most_logits = plan.most_sequences;
  for (const std::uint32_t drafted : plan.drafted) {
    if (drafted > kMostDrafted) {
      throw UsageError(fmt::format("--draft-tokens: {} is more than {}", drafted, kMostDrafted));
    }
    plan.most_logits = std::max(plan.most_logits, 1 + drafted);
    for (const std::uint32_t depth : plan.depths) longer(std::uint64_t{depth} + 1 + drafted);
  }
  if (plan.longest == 0) throw UsageError("nothing to measure: give --prompt or --decode");
  return plan;
}

Json to_json(const BenchArguments& arguments, const ExecutorInfo& info,
             const std::vector<Throughput>& results) {
  Json document = {{"model", arguments.model.title()}, {"precision", arguments.model.precision},
                   {"kv", kv_name(arguments.model)},   {"isa", info.isa},
                   {"kernels", info.kernels},          {"repetitions", arguments.repetitions},
                   {"results", Json::array()}};
  for (const Throughput& result : results) {
    document["results"].push_back({{"test", result.test},
                                   {"tokens", result.tokens},
                                   {"depth", result.depth},
                                   {"sequences", result.sequences},
                                   {"drafted", result.drafted},
                                   {"tps", result.tps},
                                   {"tps_min", result.tps_min},
                                   {"tps_max", result.tps_max},
                                   {"threads", info.threads},
                                   {"handover_seconds", result.handover},
                                   {"backend", info.backend}});
  }
  return document;
}

std::string header(const BenchArguments& arguments, const ExecutorInfo& info) {
  std::string text =
      fmt::format("{}\nbackend {}{}{}, {} {}, precision {}, cache {}\n", arguments.model.title(),
                  info.backend, info.isa.empty() ? "" : ", instruction set ", info.isa,
                  info.threads, info.threads == 1 ? "thread" : "threads", arguments.model.precision,
                  kv_name(arguments.model));
  for (const std::string& kernel : info.kernels) text += fmt::format("kernel {}\n", kernel);
  return text + fmt::format("{:<8}{:>8}{:>8}{:>11}{:>9}{:>12}{:>12}{:>12}\n", "test", "tokens",
                            "depth", "sequences", "drafted", "tok/s", "least", "most");
}

void bench(const BenchArguments& arguments) {
  BareModel model(arguments.model);
  const Plan plan = make_plan(arguments, model.context());
  Executor& executor = model.start(plan.longest, plan.most_logits, plan.most_sequences);
  ThroughputMeter meter(executor, model.spec().vocab_size, arguments.repetitions, model.adapters());

  std::vector<Throughput> results;
  if (!arguments.json) write_output(header(arguments, executor.info()));
  const auto take = [&](const Throughput& result) {
    clear_progress();
    if (!arguments.json) {
      write_output(fmt::format("{:<8}{:>8}{:>8}{:>11}{:>9}{:>12.1f}{:>12.1f}{:>12.1f}\n",
                               result.test, result.tokens, result.depth, result.sequences,
                               result.drafted, result.tps, result.tps_min, result.tps_max));
    }
    results.push_back(result);
  };
  for (const std::uint32_t tokens : plan.prompts) {
    show_progress(fmt::format("prefill of {} tokens ...", tokens));
    take(meter.prefill(tokens));
  }
  for (const std::uint32_t depth : plan.depths) {
    for (const std::uint32_t sequences : plan.sequences) {
      show_progress(fmt::format("decode of {} tokens at depth {}, sequences: {} ...",
                                arguments.decode, depth, sequences));
      take(meter.decode(arguments.decode, depth, sequences));
    }
    for (const std::uint32_t drafted : plan.drafted) {
      show_progress(fmt::format("checks of {} drafted tokens at depth {} ...", drafted, depth));
      take(meter.check(arguments.decode, depth, drafted));
    }
  }
  if (arguments.json) write_json(to_json(arguments, executor.info(), results));
}

}  // namespace

void add_bench_command(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("bench", "Tokens a second of prefill and decode, nothing reused");
  const auto arguments = std::make_shared<BenchArguments>();
  arguments->model.add_to_with_shape(*command);
  command->add_option("--prompt", arguments->prompt,
                      "Prompt lengths, or none; default 16,128,512,2048 within the context");
  command->add_option("--decode", arguments->decode, "Tokens to decode; 0: no decoding")
      ->capture_default_str();
  command->add_option("--depth", arguments->depth,
                      "Tokens in the cache before decoding, or none; default 0,2048");
  command
      ->add_option("--sequences", arguments->sequences,
                   "Sequences that decode at once, as in 1,8; their tokens a second are added up")
      ->capture_default_str();
  command->add_option("--draft-tokens", arguments->drafted,
                      "Also steps that check so many guessed tokens, as in 1,3,7,15: what "
                      "speculative decoding costs, and gives where every guess is right");
  command->add_option("--repetitions", arguments->repetitions, "Of each test, after one to warm up")
      ->check(CLI::Range(1U, kMostRepetitions))
      ->capture_default_str();
  command->add_flag("--json", arguments->json, R"(Print {"results":[...]})");
  command->callback([arguments] { bench(*arguments); });
}

}  // namespace edgerunner::cli
