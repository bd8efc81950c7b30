#pragma once

#include <stdexcept>
#include <string>

namespace edgerunner {

// What kind of thing went wrong; the message says which file, tensor, key or option, and what to
// do.
enum class ErrorCode {
  invalid_file,      // the file is damaged, hostile or not what it claims to be
  unsupported,       // understood, but EdgeRunner can't run it (architecture, element type, ...)
  out_of_memory,     // would not fit, or an allocation failed
  invalid_argument,  // the caller's value is out of range
  context_full,      // the sequence has reached the context length
  cancelled,         // stopped by request
  device,            // a GPU or its driver failed, or logits were not finite
  io,                // the operating system refused a file operation
};

// The one exception type that EdgeRunner throws on purpose.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace edgerunner
