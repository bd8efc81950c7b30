#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "cli/bare_model.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/number_checks.h"
#include "cli/output.h"
#include "cli/usage_error.h"
#include "edgerunner/error.h"
#include "runtime/check_tokens.h"
#include "runtime/verify.h"
#include "tokenizer/load.h"

namespace edgerunner::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint32_t kLogitRows = 64;  // of one batch
// The logits of all positions are held twice: 400 MB at a vocabulary of 100,000.
constexpr std::uint32_t kMostTokens = 512;

// Prose, figures, code and another language, so that many parts of a vocabulary are met.
constexpr std::string_view kText =
    "The lighthouse keeper counted 1,287 steps from the pier to the lamp, and wrote the number "
    "down "
    "in a ledger. \"Light travels about 300,000 kilometres in a second,\" she said, \"so the ship "
    "sees it at once.\"\n\n"
    "def area(width, height):\n    return width * height\n\n"
    "Le soir, quand la mer est calme, on entend les cloches du village.";

struct VerifyArguments {
  ModelArguments model;
  InputOptions input;
  std::uint32_t tokens = 48;
  std::uint32_t greedy = 16;
  std::optional<double> max_error;
  std::optional<double> max_kl;
  bool json = false;
};

bool has_input(const InputOptions& input) {
  return input.text || input.file || input.ids || !input.dash.empty();
}

std::vector<TokenId> read_tokens(const VerifyArguments& arguments, const BareModel& model) {
  std::vector<TokenId> tokens;
  if (arguments.input.ids) {
    tokens = parse_ids(*arguments.input.ids);
  } else if (has_input(arguments.input) || model.file()->find("tokenizer.ggml.model") != nullptr) {
    tokens =
        load_tokenizer(*model.file())
            ->encode(has_input(arguments.input) ? arguments.input.read_text() : std::string(kText));
  } else {  // a file without a vocabulary
    for (std::uint32_t i = 0; i < arguments.tokens; ++i) {
      tokens.push_back(static_cast<TokenId>((i * 7919 + 13) % model.spec().vocab_size));
    }
  }
  const std::uint32_t room =
      model.context() > arguments.greedy ? model.context() - arguments.greedy : 1;
  tokens.resize(std::min<std::size_t>(tokens.size(), std::min(arguments.tokens, room)));
  check_tokens(tokens, model.spec().vocab_size);
  return tokens;
}

Json to_json(const VerifyArguments& arguments, const ExecutorInfo& info, KvPrecision kv,
             const VerifyBounds& bounds, const VerifyReport& report) {
  Json document = {{"model", arguments.model.path},
                   {"backend", info.backend},
                   {"isa", info.isa},
                   {"precision", arguments.model.precision},
                   {"kv", name(kv)},
                   {"verdict", report.failures.empty() ? "pass" : "fail"},
                   {"failures", report.failures},
                   {"bounds", {{"error", bounds.error}, {"mean_kl", bounds.mean_kl}}},
                   {"largest_logit", report.largest_logit},
                   {"error", report.error},
                   {"mean_kl", report.mean_kl},
                   {"largest_kl", report.largest_kl},
                   {"top1_agreement", report.top1_agreement},
                   {"greedy", {{"tokens", report.greedy_tokens}, {"diverged", nullptr}}},
                   {"positions", Json::array()}};
  if (report.diverged) {
    document["greedy"]["diverged"] = {{"index", report.diverged->index},
                                      {"expected", report.diverged->expected},
                                      {"got", report.diverged->got},
                                      {"gap", report.diverged->gap}};
  }
  for (const PositionReport& position : report.positions) {
    document["positions"].push_back({{"position", position.position},
                                     {"error", position.error},
                                     {"kl", position.kl},
                                     {"same_top", position.same_top}});
  }
  return document;
}

std::string to_text(const VerifyArguments& arguments, const ExecutorInfo& info, KvPrecision kv,
                    const VerifyBounds& bounds, const VerifyReport& report) {
  std::string text = fmt::format(
      "{}\nbackend {}{}{}, precision {}, cache {}, against reference\n{:>8}{:>12}{:>12}  {}\n",
      arguments.model.path, info.backend, info.isa.empty() ? "" : ", instruction set ", info.isa,
      arguments.model.precision, name(kv), "position", "error", "KL", "likeliest token");
  for (const PositionReport& position : report.positions) {
    text += fmt::format("{:>8}{:>12.2e}{:>12.2e}  {}\n", position.position, position.error,
                        position.kl, position.same_top ? "same" : "another");
  }
  text += fmt::format(
      "largest error          {:.2e} of the largest logit (bound {:.2g})\n"
      "mean KL divergence     {:.2e} nats (bound {:.2g}), largest {:.2e}\n"
      "likeliest token        the same at {:.1f} % of {} positions\n",
      report.error, bounds.error, report.mean_kl, bounds.mean_kl, report.largest_kl,
      100 * report.top1_agreement, report.positions.size());
  if (report.diverged) {
    text += fmt::format(
        "greedy text            parts at token {}: {} instead of {}, which is ahead by {:.2e} of "
        "the largest logit\n",
        report.diverged->index, report.diverged->got, report.diverged->expected,
        report.diverged->gap);
  } else {
    text += fmt::format("greedy text            the same for {} tokens\n", report.greedy_tokens);
  }
  return text +
         fmt::format("verdict                {}\n", report.failures.empty() ? "pass" : "fail");
}

void verify_model(const VerifyArguments& arguments) {
  if (has_input(arguments.input)) arguments.input.check("--file FILE, --text TEXT, --ids IDS or -");
  ModelArguments reference_arguments = arguments.model;
  reference_arguments.backend = "reference";
  BareModel tested_model(arguments.model);
  BareModel reference_model(reference_arguments);
  const std::vector<TokenId> tokens = read_tokens(arguments, tested_model);
  const auto length = static_cast<std::uint32_t>(tokens.size()) + arguments.greedy;
  Executor& tested = tested_model.start(length, kLogitRows);
  Executor& reference = reference_model.start(length, kLogitRows);

  const KvPrecision kv = tested.options().kv;
  VerifyBounds bounds = default_bounds(tested.options().precision, kv);
  if (arguments.max_error) bounds.error = *arguments.max_error;
  if (arguments.max_kl) bounds.mean_kl = *arguments.max_kl;
  const VerifyReport report = verify(
      reference, tested, tested_model.spec().vocab_size, tokens, arguments.greedy, bounds,
      [](double fraction) { show_progress(fmt::format("{:.0f} % ...", 100 * fraction)); },
      tested_model.adapters());
  clear_progress();
  if (arguments.json) {
    write_json(to_json(arguments, tested.info(), kv, bounds, report));
  } else {
    write_output(to_text(arguments, tested.info(), kv, bounds, report));
  }
  if (!report.failures.empty()) {
    throw std::runtime_error(fmt::format("{} on {} is farther from reference than allowed: {}",
                                         arguments.model.path, tested.info().backend,
                                         fmt::join(report.failures, "; ")));
  }
}

}  // namespace

void add_verify_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "verify", "Compares a backend with `reference`, double precision throughout, on a model");
  const auto arguments = std::make_shared<VerifyArguments>();
  arguments->model.add_to(*command);
  arguments->input.add_to(*command, "--text", true);
  command->add_option("--tokens", arguments->tokens, "Most tokens of the text to compare")
      ->check(CLI::Range(1U, kMostTokens))
      ->capture_default_str();
  command->add_option("--greedy", arguments->greedy, "Tokens of greedy text to compare after it")
      ->check(CLI::Range(0U, kMostTokens))
      ->capture_default_str();
  command
      ->add_option("--max-error", arguments->max_error,
                   "Bound of a logit's error, as a fraction of the largest logit")
      ->check(non_negative_number());
  command->add_option("--max-kl", arguments->max_kl, "Bound of the mean KL divergence, in nats")
      ->check(non_negative_number());
  command->add_flag("--json", arguments->json, R"(Print {"verdict":"pass"|"fail",...})");
  command->footer(
      "Without a text a built-in one is used. The bounds are those of docs/numerics.md: with "
      "exact\n"
      "and an f32 cache an error of 1e-4 of the largest logit and a mean KL divergence of 1e-6, "
      "else\n"
      "0.15 and 0.05. Greedy texts may part where the reference's two likeliest tokens are closer\n"
      "than twice the bound. Exit status 1 where a bound is passed.");
  command->callback([arguments] { verify_model(*arguments); });
}

}  // namespace edgerunner::cli
