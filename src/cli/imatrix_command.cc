#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "arch/decoder.h"
#include "backend/cpu/input_observer.h"
#include "base/cpu_features.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/options.h"
#include "cli/output.h"
#include "edgerunner/error.h"
#include "quantize/importance_matrix.h"
#include "runtime/perplexity.h"
#include "tokenizer/load.h"

namespace edgerunner::cli {
namespace {

constexpr std::uint32_t kLogitRows = 64;  // of one batch; bounds the memory

struct ImatrixArguments {
  std::string model;
  InputOptions input;
  std::string out;
  std::uint32_t window = 512;
  std::uint64_t tokens = 0;
  int threads = 0;
  bool json = false;
};

// Adds up what the products of a model read.
class Collector final : public cpu::InputObserver {
 public:
  explicit Collector(const Decoder& decoder) {
    for (std::size_t i = 0; i < decoder.spec.layers.size(); ++i) {
      const MixtureWeights& mixture = decoder.weights.layers[i].feed_forward.mixture;
      for (const Matrix* experts : {&mixture.gate, &mixture.up, &mixture.down}) {
        if (!experts->empty()) experts_[experts->name] = decoder.spec.layers[i].mixture.count;
      }
    }
  }

  void see(const Matrix& weights, std::uint32_t expert, const cpu::InputRows& rows) override {
    const auto found = experts_.find(weights.name);
    const std::lock_guard lock(mutex_);
    for (std::uint32_t i = 0; i < rows.count; ++i) {
      matrix_.add(weights.name, found == experts_.end() ? 1 : found->second, expert,
                  {rows.row(i), rows.cols});
    }
  }

  const ImportanceMatrix& matrix() const { return matrix_; }

 private:
  std::map<std::string_view, std::uint32_t> experts_;
  std::mutex mutex_;
  ImportanceMatrix matrix_;
};

void collect(const ImatrixArguments& arguments) {
  arguments.input.check("--file FILE, --text TEXT or -");
  const gguf::File file = gguf::File::open(arguments.model);
  const Decoder decoder = read_decoder(file);
  std::vector<TokenId> tokens = load_tokenizer(file)->encode(arguments.input.read_text());
  if (arguments.tokens > 0 && tokens.size() > arguments.tokens) tokens.resize(arguments.tokens);
  if (tokens.size() < 2) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("imatrix needs at least 2 tokens, but the text has {}", tokens.size()));
  }
  const std::uint32_t window = std::min(arguments.window, decoder.spec.context_length);
  ExecutorOptions options;
  options.kv = KvPrecision::f32;
  options.threads = arguments.threads > 0 ? arguments.threads : available_cores();
  options.max_context = window;
  options.pages = pages_for(window);
  options.max_logit_rows = kLogitRows;
  Collector collector(decoder);
  const auto executor = cpu::make_observed_executor(decoder, options, collector);

  // Every token wants its logits, so that the last layer and the head see all of them too.
  const auto windows = text_windows(tokens.size(), window, window - 1);
  score_windows(*executor, decoder.spec.vocab_size, tokens, windows,
                [&](std::size_t index, std::span<const float>) {
                  if (index % kLogitRows == 0) {
                    show_progress(fmt::format("{} of {} tokens", index, tokens.size()));
                  }
                });
  clear_progress();
  const std::string source = arguments.input.file.value_or("");
  collector.matrix().save(arguments.out, source, static_cast<std::uint32_t>(windows.size()),
                          window);
  if (arguments.json) {
    write_json({{"file", arguments.out},
                {"tokens", tokens.size()},
                {"windows", windows.size()},
                {"matrices", collector.matrix().size()}});
    return;
  }
  write_output(fmt::format("{}: {} matrices, from {} tokens in {} window{}\n", arguments.out,
                           collector.matrix().size(), tokens.size(), windows.size(),
                           windows.size() == 1 ? "" : "s"));
}

}  // namespace

void add_imatrix_command(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("imatrix", "What a model's matrices read on a text, for quantize");
  const auto arguments = std::make_shared<ImatrixArguments>();
  add_model_path(*command, arguments->model);
  arguments->input.add_to(*command, "--text", false);
  command->add_option("-o,--out", arguments->out, "File to write")->required();
  command->add_option("--window", arguments->window, "Tokens that the model reads at once")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  command->add_option("--tokens", arguments->tokens, "Only so many of the text; 0: all")
      ->capture_default_str();
  command->add_option("--threads", arguments->threads, "Threads (default: the cores there are)")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--json", arguments->json, "Print one JSON document");
  command->callback([arguments] { collect(*arguments); });
}

}  // namespace edgerunner::cli
