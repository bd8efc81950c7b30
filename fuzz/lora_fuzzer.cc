// Opens the input as a LoRA adapter of a tiny model and runs the model with it for three tokens.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "arch/decoder.h"
#include "edgerunner/error.h"
#include "gguf/file.h"
#include "support/touch_forward.h"

namespace {

using edgerunner::Decoder;
using edgerunner::Error;
using edgerunner::ErrorCode;
using edgerunner::gguf::File;

const Decoder& model() {
  static const File file = File::open(EDGERUNNER_FUZZ_MODEL);
  static const Decoder decoder = edgerunner::read_decoder(file);
  return decoder;
}

}  // namespace

// The name is libFuzzer's.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Decoder& decoder = model();
  try {
    edgerunner::test::touch_adapter(File::view(std::as_bytes(std::span(data, size)), "input"),
                                    decoder);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_file && error.code() != ErrorCode::unsupported) {
      std::abort();
    }
  }
  return 0;
}
