#include <fmt/format.h>

#include "backend/executor.h"
#include "edgerunner/error.h"

namespace edgerunner {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorCode::invalid_argument, "forward pass: " + why);
}

void check_pages(const SequenceSlice& slice, std::uint32_t window, std::uint32_t page_count) {
  const std::uint32_t last = slice.start + slice.rows - 1;
  // The first position that any row of the slice attends to.
  const std::uint32_t first =
      window == 0 || slice.start + 1 <= window ? 0 : slice.start + 1 - window;
  if (slice.pages.size() <= last / kPageTokens) {
    refuse(fmt::format("position {} has no page", last));
  }
  for (std::uint32_t index = first / kPageTokens; index <= last / kPageTokens; ++index) {
    if (slice.pages[index] >= page_count) {
      refuse(fmt::format("page {} of a sequence is {}, but the cache has {}", index,
                         slice.pages[index], page_count));
    }
  }
}

}  // namespace

void Executor::embed(const Batch& /*batch*/, std::span<float> /*hidden*/) {
  throw Error(ErrorCode::unsupported, fmt::format("the {} backend gives no hidden states, which "
                                                  "embeddings need; use --backend cpu",
                                                  info().backend));
}

void check_batch(const Batch& batch, const DecoderSpec& spec, const ExecutorOptions& options,
                 std::size_t logits_size) {
  if (batch.tokens.empty() || batch.tokens.size() > options.max_rows) {
    refuse(fmt::format("{} rows, but 1 to {} are possible", batch.tokens.size(), options.max_rows));
  }
  for (const TokenId token : batch.tokens) {
    if (token < 0 || static_cast<std::uint32_t>(token) >= spec.vocab_size) {
      refuse(fmt::format("token id {} is outside the vocabulary of {}", token, spec.vocab_size));
    }
  }
  std::size_t rows = 0;
  for (const SequenceSlice& slice : batch.sequences) {
    if (slice.rows == 0 || slice.rows > batch.tokens.size() - rows) {
      refuse("the rows of the sequences do not add up to the tokens");
    }
    if (slice.start >= options.max_context || slice.rows > options.max_context - slice.start) {
      refuse(fmt::format("position {} is past the context of {}",
                         std::uint64_t{slice.start} + slice.rows - 1, options.max_context));
    }
    check_pages(slice, spec.common_window(), options.pages);
    if (slice.adapters != nullptr && adapter_floats(*slice.adapters) > options.adapter_floats) {
      refuse("a sequence has adapters that the executor was not made for");
    }
    rows += slice.rows;
  }
  if (rows != batch.tokens.size()) refuse("the rows of the sequences do not add up to the tokens");
  if (batch.logit_rows.size() > options.max_logit_rows) {
    refuse(fmt::format("logits of {} rows wanted, but at most {} are possible",
                       batch.logit_rows.size(), options.max_logit_rows));
  }
  for (std::size_t i = 0; i < batch.logit_rows.size(); ++i) {
    if (batch.logit_rows[i] >= rows || (i > 0 && batch.logit_rows[i] <= batch.logit_rows[i - 1])) {
      refuse("logit rows must be ascending and inside the batch");
    }
  }
  if (logits_size < batch.logit_rows.size() * std::size_t{spec.vocab_size}) {
    refuse("the logits buffer is too small");
  }
}

}  // namespace edgerunner
