#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/bare_model.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/logit_file.h"
#include "cli/output.h"
#include "cli/usage_error.h"
#include "edgerunner/error.h"
#include "runtime/check_tokens.h"
#include "runtime/divergence.h"
#include "runtime/perplexity.h"
#include "tokenizer/load.h"

namespace edgerunner::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint32_t kWindow = 512;
constexpr std::uint32_t kLogitRows = 64;  // of one batch; bounds the memory

struct PerplexityArguments {
  ModelArguments model;
  InputOptions input;
  std::optional<std::uint32_t> window;
  std::optional<std::uint32_t> stride;
  std::uint64_t tokens = 0;
  std::string save_logits;
  std::string kl_against;
  bool json = false;
};

struct Comparison {
  double kl = 0;  // sums over the tokens
  double same_top = 0;
  double largest_kl = 0;
};

struct Result {
  std::size_t tokens = 0;
  double nll = 0;    // mean, in nats
  double error = 0;  // of the mean: standard deviation over the root of the number
  std::optional<Comparison> comparison;
};

std::vector<TokenId> read_tokens(const PerplexityArguments& arguments, const BareModel& model) {
  std::vector<TokenId> tokens;
  if (arguments.input.ids) {
    tokens = parse_ids(*arguments.input.ids);
  } else {
    tokens = load_tokenizer(*model.file())->encode(arguments.input.read_text());
  }
  if (arguments.tokens > 0 && tokens.size() > arguments.tokens) tokens.resize(arguments.tokens);
  if (tokens.size() < 2) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("perplexity needs at least 2 tokens, but the text has {}", tokens.size()));
  }
  check_tokens(tokens, model.spec().vocab_size);
  return tokens;
}

Result run(const PerplexityArguments& arguments, BareModel& model, const LogitFileHeader& header) {
  const std::vector<TokenId>& tokens = header.tokens;
  const auto windows = text_windows(tokens.size(), header.window, header.stride);
  const auto longest = std::min<std::uint64_t>(header.window, tokens.size());
  Executor& executor = model.start(static_cast<std::uint32_t>(longest), kLogitRows);
  std::optional<LogitFileReader> against;
  if (!arguments.kl_against.empty()) against.emplace(arguments.kl_against, header);
  std::optional<LogitFileWriter> save;
  if (!arguments.save_logits.empty()) save.emplace(arguments.save_logits, header);

  Result result;
  if (against) result.comparison.emplace();
  double squares = 0;
  score_windows(
      executor, header.vocab_size, tokens, windows,
      [&](std::size_t index, std::span<const float> logits) {
        const double nll = negative_log_likelihood(logits, tokens[index]);
        if (!std::isfinite(nll)) {
          throw Error(ErrorCode::device,
                      fmt::format("the logits before token {} are not finite", index));
        }
        ++result.tokens;
        result.nll += nll;
        squares += nll * nll;
        if (save) save->add(logits);
        if (against) {
          const Divergence d = divergence(against->logits(index), logits);
          result.comparison->kl += d.kl;
          result.comparison->same_top += d.same_top ? 1 : 0;
          result.comparison->largest_kl = std::max(result.comparison->largest_kl, d.kl);
        }
        if (result.tokens % kLogitRows == 0) {
          show_progress(fmt::format("{} of {} tokens, perplexity {:.4f}", result.tokens,
                                    tokens.size() - 1,
                                    std::exp(result.nll / static_cast<double>(result.tokens))));
        }
      },
      model.adapters());
  clear_progress();
  if (save) save->commit();
  const auto count = static_cast<double>(result.tokens);
  result.nll /= count;
  const double variance = std::max(0.0, squares / count - result.nll * result.nll);
  result.error = count > 1 ? std::sqrt(variance / (count - 1)) : 0;
  return result;
}

void perplexity(const PerplexityArguments& arguments) {
  arguments.input.check("--file FILE, --text TEXT, --ids IDS or -");
  BareModel model(arguments.model);
  LogitFileHeader header;
  header.vocab_size = model.spec().vocab_size;
  header.window = arguments.window.value_or(std::min(kWindow, model.context()));
  header.stride = arguments.stride.value_or(std::max<std::uint64_t>(header.window / 2, 1));
  if (header.window < 2 || header.stride < 1 || header.stride >= header.window) {
    throw UsageError(
        fmt::format("--window {} and --stride {}: a window has at least 2 tokens and "
                    "a stride is at least 1 and less than the window",
                    header.window, header.stride));
  }
  if (header.window > model.context()) {
    throw Error(ErrorCode::context_full,
                fmt::format("--window {} is more than the context of {} tokens", header.window,
                            model.context()));
  }
  header.tokens = read_tokens(arguments, model);
  const Result result = run(arguments, model, header);

  const double value = std::exp(result.nll);
  const auto count = static_cast<double>(result.tokens);
  if (arguments.json) {
    Json document = {{"nll", result.nll},       {"perplexity", value},
                     {"tokens", result.tokens}, {"nll_error", result.error},
                     {"window", header.window}, {"stride", header.stride}};
    if (result.comparison) {
      document["kl"] = result.comparison->kl / count;
      document["kl_largest"] = result.comparison->largest_kl;
      document["top1_agreement"] = result.comparison->same_top / count;
    }
    write_json(document);
    return;
  }
  std::string text = fmt::format(
      "perplexity {:.4f} +- {:.4f}\nnll {:.6f} +- {:.6f} nats a token\n"
      "{} tokens scored, windows of {}, stride {}\n",
      value, value * result.error, result.nll, result.error, result.tokens, header.window,
      header.stride);
  if (result.comparison) {
    text += fmt::format(
        "KL divergence from {}: mean {:.3e}, largest {:.3e} nats\nthe same likeliest token: "
        "{:.2f} %\n",
        arguments.kl_against, result.comparison->kl / count, result.comparison->largest_kl,
        100 * result.comparison->same_top / count);
  }
  write_output(text);
}

}  // namespace

void add_perplexity_command(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("perplexity", "How well a model predicts a text, token by token");
  const auto arguments = std::make_shared<PerplexityArguments>();
  arguments->model.add_to(*command);
  arguments->input.add_to(*command, "--text", true);
  command->add_option("--window", arguments->window,
                      "Tokens that the model reads at once; default 512 within the context");
  command->add_option("--stride", arguments->stride,
                      "Tokens from one window to the next; default half a window");
  command->add_option("--tokens", arguments->tokens, "Only so many of the text; 0: all")
      ->capture_default_str();
  command->add_option("--save-logits", arguments->save_logits,
                      "Write the logits of every scored token to this file, 4 bytes each");
  command->add_option("--kl-against", arguments->kl_against,
                      "Compare with the logits that another run saved: KL divergence from them, "
                      "and how often the likeliest token is the same");
  command->add_flag("--json", arguments->json, R"(Print {"nll","perplexity","tokens",...})");
  command->footer(
      "The text is tokenised as the model's file says (BOS in front where it asks for one) and "
      "read\n"
      "in windows, each from an empty cache. Every token but the first is scored once, in the "
      "first\n"
      "window that holds it: with at least window - stride tokens before it, save in the first\n"
      "window. nll is the mean of -log p in nats; perplexity is e^nll.");
  command->callback([arguments] { perplexity(*arguments); });
}

}  // namespace edgerunner::cli
