// Opens the input as a model: reads its decoder, runs it for three tokens, and uses its tokenizer.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "edgerunner/error.h"
#include "gguf/file.h"
#include "support/touch_decoder.h"
#include "support/touch_forward.h"
#include "support/touch_tokenizer.h"

namespace {

using edgerunner::Error;
using edgerunner::ErrorCode;
using edgerunner::gguf::File;

// Runs one part of the loading; each is tried whether or not another one refuses the file.
template <typename Action>
void attempt(Action action) {
  try {
    action();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_file && error.code() != ErrorCode::unsupported) {
      std::abort();
    }
  }
}

}  // namespace

// The name is libFuzzer's.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  attempt([&] {
    const File file = File::view(std::as_bytes(std::span(data, size)), "input");
    attempt([&] {
      edgerunner::test::touch_decoder(file);
      edgerunner::test::touch_forward(file);
    });
    attempt([&] { edgerunner::test::touch_tokenizer(file); });
  });
  return 0;
}
