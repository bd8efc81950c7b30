// Opens the input as a GGUF file and uses everything that the reader offers on it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "edgerunner/error.h"
#include "gguf/file.h"
#include "support/touch_file.h"

// The name is libFuzzer's.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using edgerunner::Error;
  using edgerunner::ErrorCode;
  try {
    edgerunner::test::touch(
        edgerunner::gguf::File::view(std::as_bytes(std::span(data, size)), "input"));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_file && error.code() != ErrorCode::unsupported) {
      std::abort();
    }
  }
  return 0;
}
