#include "cli/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>

#include "arch/shape.h"
#include "backend/executor.h"
#include "cli/number_checks.h"
#include "cli/usage_error.h"
#include "edgerunner/error.h"
#include "hub/resolve_model.h"

namespace edgerunner::cli {
namespace {

constexpr int kMostThreads = 1024;  // far beyond any machine; keeps a slip from exhausting memory

constexpr const char* kModelHelp =
    "A GGUF file, or any shard of a split one; or a name, as edgerunner list shows them";

std::pair<TokenId, float> parse_bias(const std::string& text) {
  TokenId id = 0;
  float value = 0;
  const char* const end = text.data() + text.size();
  const auto [equals, id_error] = std::from_chars(text.data(), end, id);
  bool good = id_error == std::errc{} && id >= 0 && equals != end && *equals == '=';
  if (good) {
    const char* first = equals + 1;
    if (first != end && *first == '+') ++first;
    const auto [last, value_error] = std::from_chars(first, end, value);
    good = value_error == std::errc{} && last == end && !std::isnan(value);
  }
  if (!good) {
    throw UsageError(fmt::format("--logit-bias: '{}' is not ID=VALUE, as in 42=-1.5", text));
  }
  return {id, value};
}

// PATH or PATH:SCALE: what follows the last colon is the scale where it is a number.
AdapterFile parse_adapter(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return {.path = text};
  float scale = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data() + colon + 1, end, scale);
  if (error != std::errc{} || last != end) return {.path = text};
  if (!std::isfinite(scale)) {
    throw UsageError(fmt::format("--lora {}: the scale must be a finite number", text));
  }
  return {.path = text.substr(0, colon), .scale = scale};
}

}  // namespace

void add_model_path(CLI::App& command, std::string& path) {
  accept_model_name(*command.add_option("MODEL", path, kModelHelp)->required());
}

void accept_model_name(CLI::Option& option) {
  option.transform(CLI::Validator(
      [](std::string& model) {
        model = hub::resolve_model(model);
        return std::string();  // no complaint
      },
      "", ""));
}

void ModelArguments::add_to(CLI::App& command) {
  add_model_path(command, path);
  add_running_options(command);
}

void ModelArguments::add_to_with_shape(CLI::App& command) {
  accept_model_name(*command.add_option("MODEL", path, kModelHelp));
  command
      .add_option("--shape", shape,
                  fmt::format("Instead of a file: random weights in the shape of a known model; {}",
                              fmt::join(shape_names(), ", ")))
      ->check(CLI::IsMember(shape_names()));
  command.add_option("--type", type, "Element type of every matrix of --shape")
      ->capture_default_str();
  add_running_options(command);
}

std::string ModelArguments::title() const {
  return shape.empty() ? path : fmt::format("{}, {}, random weights", shape, type);
}

void ModelArguments::add_running_options(CLI::App& command) {
  const std::string group = "Running";
  command
      .add_option("--backend", backend, "Where it runs: cpu, reference (slow and exact) or cuda")
      ->check(CLI::IsMember({"cpu", "reference", "cuda"}))
      ->capture_default_str()
      ->group(group);
  command.add_option("--precision", precision, "fast: 8-bit activations; exact: f32 throughout")
      ->check(CLI::IsMember({"fast", "exact"}))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--kv", kv,
                  "Element type of the KV cache: f16 (default), f32 (default where exact), or q8; "
                  "reference keeps doubles whatever it is")
      ->check(CLI::IsMember({"f16", "f32", "q8"}))
      ->group(group);
  command.add_option("--threads", threads, "Threads; by default the cores this process may use")
      ->check(CLI::Range(1, kMostThreads))
      ->group(group);
  command
      .add_option("--context", context,
                  "Most tokens of a sequence; by default the model's, at most 8192")
      ->check(positive_number())
      ->group(group);
  add_repeatable(command, "--lora", lora,
                 "PATH[:SCALE], a LoRA adapter (GGUF) and how strongly it applies, 1 as it was "
                 "trained; repeatable")
      ->group(group);
  command.add_option("--seed", seed, "Seed of the sampler")
      ->transform(whole_number())
      ->capture_default_str()
      ->group(group);
}

void ModelArguments::add_speculation(CLI::App& command) {
  const std::string group = "Speculation (the text stays the same)";
  command
      .add_option_function<std::string>(
          "--speculate", [this](const std::string& how) { lookup = how == "lookup"; },
          "lookup: guess that what followed the last tokens before follows again, and check "
          "several at once; faster where a text repeats its prompt. off (default)")
      ->check(CLI::IsMember({"lookup", "off"}))
      ->group(group);
  command
      .add_option("--draft", draft, "A smaller model of the same vocabulary that guesses instead")
      ->group(group);
  command
      .add_option("--draft-tokens", draft_tokens, "Most tokens guessed at once; fewer as it pays")
      ->check(CLI::Range(1, 64))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--draft-confidence", draft_confidence,
                  "--draft stops where the chance that its guesses are right falls below this; 0: "
                  "never")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str()
      ->group(group);
}

ModelOptions ModelArguments::options() const {
  if (lookup && !draft.empty()) throw UsageError("give one of --speculate lookup and --draft");
  if (backend == "cuda" && !cuda_available()) {
    throw Error(
        ErrorCode::unsupported,
        "the cuda backend is not built into this program, or finds no GPU; use --backend cpu");
  }
  ModelOptions options;
  options.backend = backend == "cuda"        ? BackendKind::cuda
                    : backend == "reference" ? BackendKind::reference
                                             : BackendKind::cpu;
  options.precision = precision == "exact" ? Precision::exact : Precision::fast;
  if (!kv.empty()) {
    options.kv = kv == "q8" ? KvPrecision::q8 : kv == "f32" ? KvPrecision::f32 : KvPrecision::f16;
  }
  options.threads = threads;
  options.context = context;
  options.speculation.lookup = lookup;
  options.speculation.draft_model = draft;
  options.speculation.draft_tokens = draft_tokens;
  options.speculation.draft_confidence = draft_confidence;
  for (const std::string& adapter : lora) options.adapters.push_back(parse_adapter(adapter));
  return options;
}

CLI::Option* add_repeatable(CLI::App& command, const std::string& name,
                            std::vector<std::string>& values, const std::string& help) {
  // Not add_option(vector): that one takes "[a,b]" apart and swallows the words that follow.
  CLI::callback_t append = [&values](const CLI::results_t& given) {
    values.insert(values.end(), given.begin(), given.end());
    return true;
  };
  return command.add_option(name, append, help)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void SamplingArguments::add_to(CLI::App& command) {
  const std::string group = "Sampling";
  SamplingOptions& sampling = options.sampling;
  command.add_option("--temperature", sampling.temperature, "0 is greedy")
      ->check(non_negative_number())
      ->capture_default_str()
      ->group(group);
  command.add_option("--top-k", sampling.top_k, "Keep the k likeliest tokens; 0 is off")
      ->check(non_negative_number())
      ->capture_default_str()
      ->group(group);
  command.add_option("--top-p", sampling.top_p, "Keep the likeliest tokens that add up to p")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--min-p", sampling.min_p, "Drop tokens below p times the likeliest; 0 is off")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--repeat-penalty", sampling.repeat_penalty,
                  "Divides a repeated token's positive logit, multiplies a negative; 1 is off")
      ->check(positive_number())
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--frequency-penalty", sampling.frequency_penalty,
                  "Subtracted for each time that a token occurred")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--presence-penalty", sampling.presence_penalty,
                  "Subtracted once where a token occurred")
      ->capture_default_str()
      ->group(group);
  add_repeatable(command, "--logit-bias", logit_bias, "ID=VALUE, added to a logit; repeatable")
      ->group(group);
  add_repeatable(command, "--stop", options.stop, "Ends the text before this; repeatable")
      ->group(group);
  command.add_flag("--ignore-eos", options.ignore_eos, "Go on past the model's end tokens")
      ->group(group);
  command
      .add_flag("--circular", options.circular_context,
                "Where the context is full, forget the older half of the text and go on")
      ->group(group);
  command
      .add_option("--keep", options.keep_tokens,
                  "Tokens at the beginning that --circular never forgets")
      ->capture_default_str()
      ->group(group);
}

GenerateOptions SamplingArguments::resolve(std::uint64_t seed) const {
  GenerateOptions resolved = options;
  resolved.sampling.seed = seed;
  for (const std::string& stop : options.stop) {
    if (stop.empty()) throw UsageError("--stop: an empty string would stop everything");
  }
  if (options.keep_tokens > 0 && !options.circular_context) {
    throw UsageError("--keep says what --circular keeps; give both");
  }
  for (const std::string& bias : logit_bias) {
    resolved.sampling.logit_bias.push_back(parse_bias(bias));
  }
  return resolved;
}

}  // namespace edgerunner::cli
