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

// The mean of numbers, and its standard error: their standard deviation over the root of how many
// they are.
class Mean {
 public:
  void add(double value) {
    ++count_;
    sum_ += value;
    squares_ += value * value;
  }
  std::size_t count() const { return count_; }
  double value() const { return sum_ / static_cast<double>(count_); }
  double error() const {
    const auto count = static_cast<double>(count_);
    const double variance = std::max(0.0, squares_ / count - value() * value());
    return count > 1 ? std::sqrt(variance / (count - 1)) : 0;
  }

 private:
  std::size_t count_ = 0;
  double sum_ = 0;
  double squares_ = 0;
};

struct Comparison {
  Mean kl;
  Mean same_top;
  Mean nll_difference;  // from the saved ones, token by token
  double largest_kl = 0;
};

struct Result {
  Mean nll;  // in nats, of tokens
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
  score_windows(
      executor, header.vocab_size, tokens, windows,
      [&](std::size_t index, std::span<const float> logits) {
        const double nll = negative_log_likelihood(logits, tokens[index]);
        if (!std::isfinite(nll)) {
          throw Error(ErrorCode::device,
                      fmt::format("the logits before token {} are not finite", index));
        }
        result.nll.add(nll);
        if (save) save->add(logits);
        if (against) {
          const std::span<const float> saved = against->logits(index);
          const Divergence d = divergence(saved, logits);
          result.comparison->kl.add(d.kl);
          result.comparison->same_top.add(d.same_top ? 1 : 0);
          result.comparison->nll_difference.add(nll -
                                                negative_log_likelihood(saved, tokens[index]));
          result.comparison->largest_kl = std::max(result.comparison->largest_kl, d.kl);
        }
        if (result.nll.count() % kLogitRows == 0) {
          show_progress(fmt::format("{} of {} tokens, perplexity {:.4f}", result.nll.count(),
                                    tokens.size() - 1, std::exp(result.nll.value())));
        }
      },
      model.adapters());
  clear_progress();
  if (save) save->commit();
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

  const Mean& nll = result.nll;
  const double value = std::exp(nll.value());
  if (arguments.json) {
    Json document = {{"nll", nll.value()},      {"perplexity", value},
                     {"tokens", nll.count()},   {"nll_error", nll.error()},
                     {"window", header.window}, {"stride", header.stride}};
    if (const auto& comparison = result.comparison) {
      document["kl"] = comparison->kl.value();
      document["kl_largest"] = comparison->largest_kl;
      document["top1_agreement"] = comparison->same_top.value();
      document["nll_difference"] = comparison->nll_difference.value();
      document["nll_difference_error"] = comparison->nll_difference.error();
    }
    write_json(document);
    return;
  }
  std::string text = fmt::format(
      "perplexity {:.4f} +- {:.4f}\nnll {:.6f} +- {:.6f} nats a token\n"
      "{} tokens scored, windows of {}, stride {}\n",
      value, value * nll.error(), nll.value(), nll.error(), nll.count(), header.window,
      header.stride);
  if (const auto& comparison = result.comparison) {
    text += fmt::format(
        "KL divergence from {}: mean {:.3e}, largest {:.3e} nats\nthe same likeliest token: "
        "{:.2f} %\nnll less the saved: {:.6f} +- {:.6f} nats a token, in pairs\n",
        arguments.kl_against, comparison->kl.value(), comparison->largest_kl,
        100 * comparison->same_top.value(), comparison->nll_difference.value(),
        comparison->nll_difference.error());
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
