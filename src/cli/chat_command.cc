#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "cli/answer_interrupt.h"
#include "cli/commands.h"
#include "cli/conversation_session.h"
#include "cli/line_reader.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/summary_line.h"
#include "edgerunner/error.h"
#include "edgerunner/model.h"

namespace edgerunner::cli {
namespace {

constexpr std::string_view kHelp =
    "/system TEXT  begin anew with this system message (without TEXT: with none)\n"
    "/retry        another answer to the last message\n"
    "/save FILE    write the conversation to a JSON file\n"
    "/load FILE    go on with a conversation from a file\n"
    "/stats        what the last answer took\n"
    "/exit         leave (as Ctrl-D does)\n"
    "A line that ends with \\ goes on in the next one; \"\"\" begins and ends a text of several\n"
    "lines. Ctrl-C stops an answer.\n";

struct ChatArguments {
  ModelArguments model;
  SamplingArguments sampling;
  std::string system;
};

// The conversation as a user sees it: lines in, text out.
class Chat {
 public:
  Chat(Model& model, const ChatArguments& arguments, AnswerInterrupt& interrupt)
      : session_(model, arguments.sampling.resolve(arguments.model.seed)), interrupt_(interrupt) {
    session_.restart(arguments.system);
  }

  void run() {
    if (reader_.is_terminal()) write_output("/help lists the commands.\n");
    while (const std::optional<std::string> line = reader_.read()) {
      try {
        if (!take(*line)) return;
      } catch (const Error& error) {
        if (error.code() == ErrorCode::device) throw;
        end_of_line();
        fmt::print(stderr, "edgerunner: {}\n", error.what());
      }
    }
    if (reader_.is_terminal()) write_output("\n");
  }

 private:
  // Whether to go on.
  bool take(const std::string& line) {
    if (line.empty()) return true;
    if (!line.starts_with('/')) {
      if (!is_utf8(line)) throw Error(ErrorCode::invalid_argument, "the input is not valid UTF-8");
      answer([&](std::stop_token stop) { return session_.ask(line, on_piece(), std::move(stop)); });
      return true;
    }
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string command = line.substr(0, space);
    const std::string value = space < line.size() ? line.substr(space + 1) : std::string();
    if (command == "/exit" || command == "/quit") return false;
    if (command == "/help") {
      write_output(kHelp);
    } else if (command == "/system") {
      session_.restart(value);
    } else if (command == "/retry") {
      answer([&](std::stop_token stop) { return session_.retry(on_piece(), std::move(stop)); });
    } else if (command == "/save" || command == "/load") {
      if (value.empty()) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("{} needs the name of a file", command));
      }
      if (command == "/save") {
        session_.save(value);
      } else {
        session_.load(value);
      }
    } else if (command == "/stats") {
      write_output(fmt::format("{} turn{}, context of {} tokens\n{}", session_.turns(),
                               session_.turns() == 1 ? "" : "s", session_.context(),
                               session_.last() ? summary_line(*session_.last()) : ""));
    } else {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("'{}' is not a command; /help lists them", command));
    }
    return true;
  }

  ConversationSession::OnPiece on_piece() {
    return [this](std::string_view piece, bool reasoning) {
      if (reasoning != dimmed_) {
        end_of_line();
        colour(reasoning ? "\033[2m" : "\033[0m");
        dimmed_ = reasoning;
      }
      write_output(piece);
      line_open_ = !piece.ends_with('\n');
    };
  }

  template <typename Ask>
  void answer(const Ask& ask) {
    Summary summary;
    try {
      summary = ask(interrupt_.begin());
    } catch (...) {
      finish_answer();
      throw;
    }
    finish_answer();
    if (!colours_) return;
    colour("\033[2m");
    write_output(summary_line(summary));
    colour("\033[0m");
  }

  void finish_answer() {
    interrupt_.end();
    if (dimmed_) colour("\033[0m");
    dimmed_ = false;
    end_of_line();
  }

  void end_of_line() {
    if (line_open_) write_output("\n");
    line_open_ = false;
  }

  void colour(std::string_view code) const {
    if (colours_) write_output(code);
  }

  ConversationSession session_;
  AnswerInterrupt& interrupt_;
  LineReader reader_;
  bool colours_ = ::isatty(STDOUT_FILENO) != 0;
  bool dimmed_ = false;
  bool line_open_ = false;
};

void chat(const ChatArguments& arguments) {
  AnswerInterrupt interrupt;
  ModelOptions loading = arguments.model.options();
  loading.progress = loading_progress();
  Model model = Model::load(arguments.model.path, loading);
  for (const std::string& remark : model.info().remarks) fmt::print(stderr, "{}\n", remark);
  Chat(model, arguments, interrupt).run();
}

}  // namespace

void add_chat_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("chat", "A conversation in the terminal");
  const auto arguments = std::make_shared<ChatArguments>();
  arguments->model.add_to(*command);
  command->add_option("--system", arguments->system, "The system message");
  command
      ->add_option("--max-tokens", arguments->sampling.options.max_tokens,
                   "Most tokens of an answer; 0: until the model ends or the context is full")
      ->capture_default_str();
  arguments->sampling.add_to(*command);
  arguments->model.add_speculation(*command);
  command->callback([arguments] { chat(*arguments); });
}

}  // namespace edgerunner::cli
