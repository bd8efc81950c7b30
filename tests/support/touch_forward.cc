#include "support/touch_forward.h"

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "arch/adapter_set.h"
#include "backend/executor.h"

namespace edgerunner::test {
namespace {

void run(Executor& executor, const DecoderSpec& spec, const AdapterSet* adapters) {
  const auto last = static_cast<TokenId>(spec.vocab_size - 1);
  const std::array<TokenId, 3> tokens = {0, last, 0};
  const std::array<PageId, 1> pages = {0};
  const SequenceSlice slice{.rows = 3, .start = 0, .pages = pages, .adapters = adapters};
  const std::array<std::uint32_t, 1> logit_rows = {2};
  std::vector<float> logits(spec.vocab_size);
  executor.forward({.tokens = tokens, .sequences = {&slice, 1}, .logit_rows = logit_rows}, logits);
}

void run_everywhere(const Decoder& decoder, const AdapterSet* adapters) {
  ExecutorOptions options{.max_rows = 4, .max_logit_rows = 1, .pages = 1, .max_context = 8};
  if (adapters != nullptr) options.adapter_floats = adapter_floats(*adapters);
  run(*make_reference_executor(decoder, options), decoder.spec, adapters);
  for (const Precision precision : {Precision::fast, Precision::exact}) {
    options.precision = precision;
    options.kv = precision == Precision::fast ? KvPrecision::f16 : KvPrecision::f32;
    run(*make_cpu_executor(decoder, options), decoder.spec, adapters);
  }
}

}  // namespace

void touch_forward(const gguf::File& file) { run_everywhere(read_decoder(file), nullptr); }

void touch_adapter(gguf::File file, const Decoder& decoder) {
  const LoraAdapter adapter(std::move(file), decoder);
  const AdapterSet set{.uses = {{.adapter = &adapter, .scale = 0.5F}}, .id = 1};
  run_everywhere(decoder, &set);
}

}  // namespace edgerunner::test
