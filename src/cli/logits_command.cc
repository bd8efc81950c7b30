#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "cli/bare_model.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/usage_error.h"
#include "edgerunner/error.h"
#include "runtime/score.h"

namespace edgerunner::cli {
namespace {

constexpr std::uint32_t kLogitRows = 64;  // of one batch; bounds the memory for many positions
constexpr std::size_t kShown = 8;         // likeliest tokens of a position, for a person

struct LogitsArguments {
  ModelArguments model;
  std::string ids;
  std::string positions = "last";
  bool json = false;
};

std::vector<std::uint32_t> resolve_positions(const std::string& text, std::size_t tokens) {
  std::vector<std::uint32_t> positions;
  if (text == "last") {
    positions.push_back(static_cast<std::uint32_t>(tokens - 1));
  } else if (text == "all") {
    positions.resize(tokens);
    std::iota(positions.begin(), positions.end(), 0U);
  } else {
    positions = parse_numbers(text, "--positions");
    std::sort(positions.begin(), positions.end());
    positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
    if (positions.back() >= tokens) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("--positions {} is past the end of {} ids (the first is position 0)",
                              positions.back(), tokens));
    }
  }
  return positions;
}

// 9 significant digits give every float back exactly. JSON has no NaN or infinity.
std::string json_row(std::span<const float> logits) {
  std::string row = "[";
  for (const float logit : logits) {
    if (row.size() > 1) row += ',';
    if (std::isfinite(logit)) {
      fmt::format_to(std::back_inserter(row), "{:.9g}", logit);
    } else {
      row += "null";
    }
  }
  return row + "]";
}

std::string text_row(std::uint32_t position, std::span<const float> logits) {
  std::vector<std::uint32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto shown = static_cast<std::ptrdiff_t>(std::min(kShown, order.size()));
  std::partial_sort(order.begin(), order.begin() + shown, order.end(),
                    [&](std::uint32_t a, std::uint32_t b) {
                      return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
                    });
  std::string row = fmt::format("position {}:", position);
  for (std::ptrdiff_t i = 0; i < shown; ++i) {
    const std::uint32_t id = order[static_cast<std::size_t>(i)];
    row += fmt::format(" {}={:.6g}", id, logits[id]);
  }
  return row + "\n";
}

void logits(const LogitsArguments& arguments) {
  const std::vector<TokenId> ids = parse_ids(arguments.ids);
  const auto positions = resolve_positions(arguments.positions, ids.size());
  BareModel model(arguments.model);
  const std::uint32_t vocab_size = model.spec().vocab_size;
  for (const TokenId id : ids) {
    if (static_cast<std::uint32_t>(id) >= vocab_size) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("token id {} is outside the vocabulary of {} tokens", id, vocab_size));
    }
  }
  Executor& executor = model.start(static_cast<std::uint32_t>(ids.size()), kLogitRows);
  bool first = true;
  score(
      executor, vocab_size, ids, positions,
      [&](std::uint32_t position, std::span<const float> row) {
        if (!arguments.json) {
          write_output(text_row(position, row));
          return;
        }
        const std::string before =
            first ? fmt::format(R"({{"positions":[{}],"logits":[)", fmt::join(positions, ","))
                  : ",";
        write_output(before + json_row(row));
        first = false;
      },
      model.adapters());
  if (arguments.json) write_output("]}\n");
}

}  // namespace

void add_logits_command(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("logits", "What a model gives at positions of a token sequence");
  const auto arguments = std::make_shared<LogitsArguments>();
  arguments->model.add_to(*command);
  command->add_option("--ids", arguments->ids, "Token ids, as 1,2,3")->required();
  command->add_option("--positions", arguments->positions, "last, all, or a list such as 0,7")
      ->capture_default_str();
  command->add_flag("--json", arguments->json, R"(Print {"positions":[...],"logits":[[...]]})");
  command->callback([arguments] { logits(*arguments); });
}

}  // namespace edgerunner::cli
