#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace edgerunner::cli {

// Each adds one command to the program: its options, its help, and what it does as the callback.
// The callback throws Error where the work fails, UsageError where the options make no sense.
void add_info_command(CLI::App& program);
void add_tokenize_command(CLI::App& program);
void add_detokenize_command(CLI::App& program);
void add_logits_command(CLI::App& program);
void add_perplexity_command(CLI::App& program);
void add_verify_command(CLI::App& program);
void add_generate_command(CLI::App& program);
void add_chat_command(CLI::App& program);
void add_render_command(CLI::App& program);
void add_bench_command(CLI::App& program);
void add_profile_command(CLI::App& program);
void add_serve_command(CLI::App& program);
void add_quantize_command(CLI::App& program);
void add_convert_command(CLI::App& program);
void add_imatrix_command(CLI::App& program);

}  // namespace edgerunner::cli
