#include "cli/summary_line.h"

#include <fmt/format.h>

namespace edgerunner::cli {

std::string summary_line(const Summary& summary) {
  std::string line = fmt::format(
      "{} prompt tokens ({} reused), {} generated; prefill {:.1f} tok/s, decode {:.1f} tok/s, "
      "first token after {:.3f} s",
      summary.prompt_tokens, summary.reused_tokens, summary.generated_tokens, summary.prefill_tps,
      summary.decode_tps, summary.time_to_first_token_s);
  if (summary.drafted_tokens > 0) {
    line += fmt::format("; {} of {} guessed tokens right ({:.0f} %)", summary.accepted_tokens,
                        summary.drafted_tokens,
                        100.0 * summary.accepted_tokens / summary.drafted_tokens);
  }
  if (summary.context_shifts > 0) {
    line += fmt::format("; the context was full {} times and forgot its older half",
                        summary.context_shifts);
  }
  return line + fmt::format("; finished: {}\n", name(summary.finish_reason));
}

}  // namespace edgerunner::cli
