#include "support/touch_forward.h"

#include <array>
#include <memory>
#include <vector>

#include "arch/decoder.h"
#include "backend/executor.h"

namespace edgerunner::test {
namespace {

void run(Executor& executor, const DecoderSpec& spec) {
  const auto last = static_cast<TokenId>(spec.vocab_size - 1);
  const std::array<TokenId, 3> tokens = {0, last, 0};
  const std::array<PageId, 1> pages = {0};
  const SequenceSlice slice{.rows = 3, .start = 0, .pages = pages};
  const std::array<std::uint32_t, 1> logit_rows = {2};
  std::vector<float> logits(spec.vocab_size);
  executor.forward({.tokens = tokens, .sequences = {&slice, 1}, .logit_rows = logit_rows}, logits);
}

}  // namespace

void touch_forward(const gguf::File& file) {
  const Decoder decoder = read_decoder(file);
  ExecutorOptions options{.max_rows = 4, .max_logit_rows = 1, .pages = 1, .max_context = 8};
  run(*make_reference_executor(decoder, options), decoder.spec);
  for (const Precision precision : {Precision::fast, Precision::exact}) {
    options.precision = precision;
    options.kv = precision == Precision::fast ? KvPrecision::f16 : KvPrecision::f32;
    run(*make_cpu_executor(decoder, options), decoder.spec);
  }
}

}  // namespace edgerunner::test
