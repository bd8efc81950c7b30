#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/input.h"
#include "cli/options.h"
#include "cli/output.h"
#include "gguf/file.h"
#include "tokenizer/load.h"

namespace edgerunner::cli {
namespace {

struct TokenizeArguments {
  std::string model;
  InputOptions input;
  bool bos = false;
  bool parse_special = false;
  bool json = false;
};

void tokenize(const TokenizeArguments& arguments) {
  arguments.input.check("--text, --file and -");
  const auto tokenizer = load_tokenizer(gguf::File::open(arguments.model));
  const std::vector<TokenId> ids =
      tokenizer->encode(arguments.input.read_text(),
                        {.add_special = arguments.bos, .parse_special = arguments.parse_special});
  if (arguments.json) {
    write_json({{"ids", ids}});
  } else {
    write_output(fmt::format("{}\n", fmt::join(ids, ",")));
  }
}

struct DetokenizeArguments {
  std::string model;
  std::string ids;
  bool skip_special = false;
  bool json = false;
};

void detokenize(const DetokenizeArguments& arguments) {
  const std::vector<TokenId> ids = parse_ids(arguments.ids);
  const auto tokenizer = load_tokenizer(gguf::File::open(arguments.model));
  const std::string text = tokenizer->decode(ids, !arguments.skip_special);
  if (arguments.json) {
    write_json({{"text", text}});
  } else {
    write_output(text);
  }
}

}  // namespace

void add_tokenize_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("tokenize", "Text to token ids");
  const auto arguments = std::make_shared<TokenizeArguments>();
  add_model_path(*command, arguments->model);
  arguments->input.add_to(*command, "--text", false);
  command->add_flag("--bos", arguments->bos,
                    "Add what the model's metadata adds to a prompt (BOS, EOS)");
  command->add_flag("--parse-special", arguments->parse_special,
                    "Read control tokens in the text as tokens, not as plain text");
  command->add_flag("--json", arguments->json, R"(Print {"ids":[...]})");
  command->callback([arguments] { tokenize(*arguments); });
}

void add_detokenize_command(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("detokenize", "Token ids to text, byte for byte, nothing added");
  const auto arguments = std::make_shared<DetokenizeArguments>();
  add_model_path(*command, arguments->model);
  command->add_option("--ids", arguments->ids, "Token ids, as 1,2,3")->required();
  command->add_flag("--skip-special", arguments->skip_special, "Leave control tokens out");
  command->add_flag("--json", arguments->json, R"(Print {"text":"..."})");
  command->callback([arguments] { detokenize(*arguments); });
}

}  // namespace edgerunner::cli
