#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/bare_model.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/profiler.h"
#include "cli/usage_error.h"

namespace edgerunner::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint32_t kPrompt = 512;
constexpr std::uint32_t kMostRepetitions = 1000;

struct ProfileArguments {
  ModelArguments model;
  std::optional<std::uint32_t> prompt;  // absent: 512, or the context where it is less
  std::uint32_t decode = 64;
  std::uint32_t depth = 0;
  std::uint32_t repetitions = 3;
  bool json = false;
};

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

Json to_json(const ProfileLine& line) {
  const auto operations = [&](Arithmetic kind) {
    return line.cost.operations[static_cast<std::size_t>(kind)];
  };
  return {{"operation", line.operation},
          {"seconds", line.seconds},
          {"weight_bytes", line.cost.weight_bytes},
          {"cache_bytes", line.cost.cache_bytes},
          {"int8_operations", operations(Arithmetic::int8)},
          {"half_operations", operations(Arithmetic::half)},
          {"f32_operations", operations(Arithmetic::f32)},
          {"bytes_per_s", share(line.cost.bytes(), line.seconds)},
          {"operations_per_s", share(line.cost.all_operations(), line.seconds)},
          {"bound", name(line.bound.unit)},
          {"least_seconds", line.bound.seconds},
          {"fraction_of_limit", share(line.bound.seconds, line.seconds)}};
}

Json to_json(const PhaseProfile& profile) {
  Json document = {{"phase", profile.phase},
                   {"tokens", profile.tokens},
                   {"depth", profile.depth},
                   {"tps", share(profile.tokens, profile.total.seconds)},
                   {"operations", Json::array()},
                   {"total", to_json(profile.total)},
                   {"handover_seconds", profile.handover}};
  for (const ProfileLine& line : profile.lines) document["operations"].push_back(to_json(line));
  return document;
}

Json to_json(const MachineLimits& limits) {
  const auto operations = [&](Arithmetic kind) {
    return limits.operations[static_cast<std::size_t>(kind)];
  };
  return {{"read_bytes_per_s", limits.read_bytes},
          {"weights_read_bytes_per_s", limits.weights_read_bytes},
          {"int8_operations_per_s", operations(Arithmetic::int8)},
          {"half_operations_per_s", operations(Arithmetic::half)},
          {"f32_operations_per_s", operations(Arithmetic::f32)},
          {"handover_seconds", limits.handover}};
}

Json to_json(const ProfileArguments& arguments, const ExecutorInfo& info,
             const MachineLimits& limits, const std::vector<PhaseProfile>& profiles) {
  Json document = {{"model", arguments.model.title()},
                   {"backend", info.backend},
                   {"isa", info.isa},
                   {"threads", info.threads},
                   {"precision", arguments.model.precision},
                   {"repetitions", arguments.repetitions},
                   {"kernels", info.kernels},
                   {"limits", to_json(limits)},
                   {"phases", Json::array()}};
  for (const PhaseProfile& profile : profiles) document["phases"].push_back(to_json(profile));
  return document;
}

std::string number_or_dash(double value, int decimals) {
  return value > 0 ? fmt::format("{:.{}f}", value, decimals) : "-";
}

std::string to_text(const ProfileLine& line, double total) {
  const double operations = line.cost.all_operations();
  const double bytes = line.cost.bytes();
  const double fraction = share(line.bound.seconds, line.seconds);
  return fmt::format(
      "{:<17}{:>10.2f}{:>6.1f} %{:>10}{:>8}{:>10}{:>8}   {:<8}{:>8}\n", line.operation,
      line.seconds * 1e3, 100 * share(line.seconds, total), number_or_dash(bytes / 1e6, 2),
      number_or_dash(share(bytes, line.seconds) / 1e9, 1), number_or_dash(operations / 1e9, 3),
      number_or_dash(share(operations, line.seconds) / 1e9, 0), name(line.bound.unit),
      fraction > 0 ? fmt::format("{:.0f} %", 100 * fraction) : "-");
}

// Whether the threads were moved between the limits and the end of a phase.
bool were_moved(const PhaseProfile& profile, const MachineLimits& limits) {
  constexpr double kAlike = 1.7;  // a cache in common makes three to five times
  const auto [least, most] = std::minmax(
      {limits.handover[0], limits.handover[1], profile.handover[0], profile.handover[1]});
  return most > kAlike * least;
}

std::string to_text(const PhaseProfile& profile, const MachineLimits& limits) {
  const double total = profile.total.seconds;
  std::string text = fmt::format("\n{} of {} {}", profile.phase, profile.tokens,
                                 profile.tokens == 1 ? "token" : "tokens");
  if (profile.phase == "decode") text += fmt::format(" at depth {}", profile.depth);
  text +=
      fmt::format(": {:.1f} ms, {:.1f} tok/s, {:.0f} % of what the limits allow\n", total * 1e3,
                  share(profile.tokens, total), 100 * share(profile.total.bound.seconds, total));
  text += fmt::format("{:<17}{:>10}{:>8}{:>10}{:>8}{:>10}{:>8}   {:<8}{:>8}\n", "operation", "ms",
                      "share", "MB", "GB/s", "GOP", "GOP/s", "bound", "of it");
  for (const ProfileLine& line : profile.lines) text += to_text(line, total);
  text += to_text(profile.total, total);
  if (were_moved(profile, limits)) {
    text += fmt::format(
        "The threads ran elsewhere meanwhile, so that the limits may not hold: they saw each "
        "other\n"
        "after {:.0f} ns before and {:.0f} ns after this, {:.0f} and {:.0f} ns when limits were "
        "measured\n",
        profile.handover[0] * 1e9, profile.handover[1] * 1e9, limits.handover[0] * 1e9,
        limits.handover[1] * 1e9);
  }
  return text;
}

std::string header(const ProfileArguments& arguments, const ExecutorInfo& info,
                   const MachineLimits& limits) {
  const auto [int8, half, f32] = limits.operations;
  std::string text = fmt::format(
      "{}\nbackend {}{}{}, {} {}, precision {}\n", arguments.model.title(), info.backend,
      info.isa.empty() ? "" : ", instruction set ", info.isa, info.threads,
      info.threads == 1 ? "thread" : "threads", arguments.model.precision);
  text += fmt::format(
      "limits, measured now: read {} GB/s{}; int8 {}, half {}, f32 {} GOP/s\n",
      number_or_dash(limits.read_bytes / 1e9, 1),
      limits.weights_read_bytes > 0
          ? fmt::format(", {:.1f} of these weights", limits.weights_read_bytes / 1e9)
          : "",
      number_or_dash(int8 / 1e9, 0), number_or_dash(half / 1e9, 0), number_or_dash(f32 / 1e9, 0));
  if (limits.handover[0] > 0) {
    text +=
        fmt::format("a thread sees what another wrote after {:.0f} ns\n", limits.handover[0] * 1e9);
  }
  return text;
}

void profile(const ProfileArguments& arguments) {
  BareModel model(arguments.model);
  const std::uint32_t prompt = arguments.prompt.value_or(std::min(kPrompt, model.context()));
  const std::uint64_t decoded =
      arguments.decode == 0 ? 0 : std::uint64_t{arguments.depth} + arguments.decode;
  const std::uint64_t longest = std::max<std::uint64_t>(prompt, decoded);
  if (longest == 0) throw UsageError("nothing to profile: give --prompt or --decode");
  // A sum past 32 bits is past every context too.
  Executor& executor =
      model.start(static_cast<std::uint32_t>(std::min<std::uint64_t>(longest, UINT32_MAX)), 1);
  show_progress("measuring the machine ...");
  Profiler profiler(model, executor, arguments.repetitions);

  std::vector<PhaseProfile> profiles;
  if (prompt > 0) {
    show_progress(fmt::format("prefill of {} tokens ...", prompt));
    profiles.push_back(profiler.prefill(prompt));
  }
  if (arguments.decode > 0) {
    show_progress(
        fmt::format("decode of {} tokens at depth {} ...", arguments.decode, arguments.depth));
    profiles.push_back(profiler.decode(arguments.decode, arguments.depth));
  }
  clear_progress();
  if (arguments.json) {
    write_json(to_json(arguments, executor.info(), profiler.limits(), profiles));
    return;
  }
  std::string text = header(arguments, executor.info(), profiler.limits());
  for (const PhaseProfile& phase : profiles) text += to_text(phase, profiler.limits());
  write_output(text);
}

}  // namespace

void add_profile_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "profile",
      "Where the time goes, by operation, and how close that is to this machine's limits");
  const auto arguments = std::make_shared<ProfileArguments>();
  arguments->model.add_to_with_shape(*command);
  command->add_option("--prompt", arguments->prompt,
                      "Tokens of the prompt; 0: no prefill; default 512 within the context");
  command->add_option("--decode", arguments->decode, "Tokens to decode; 0: no decoding")
      ->capture_default_str();
  command->add_option("--depth", arguments->depth, "Tokens in the cache before decoding")
      ->capture_default_str();
  command->add_option("--repetitions", arguments->repetitions, "Of each, after one to warm up")
      ->check(CLI::Range(1U, kMostRepetitions))
      ->capture_default_str();
  command->add_flag("--json", arguments->json, R"(Print {"limits":{...},"phases":[...]})");
  command->footer(
      "MB is what must come from memory: every weight once a batch, and the keys and values that\n"
      "its rows see; GOP counts a multiply-add as two. \"bound\" names the limit that would hold "
      "the\n"
      "operation longest, \"of it\" how close the operation came: the least time over the time.");
  command->callback([arguments] { profile(*arguments); });
}

}  // namespace edgerunner::cli
