#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "edgerunner/edgerunner.h"

namespace edgerunner::c_api {

// Writes down the exception that is being handled for edgerunner_last_error() of this thread, and
// gives its status.
edgerunner_status record_exception() noexcept;

// The body of a function of the C interface: what it throws becomes a status and a message.
template <typename Body>
edgerunner_status guard(const Body& body) noexcept {
  try {
    body();
    return EDGERUNNER_OK;
  } catch (...) {
    return record_exception();
  }
}

// Throw Error(invalid_argument) that names the argument.
void require(const void* argument, const char* name);
[[noreturn]] void refuse(const char* name, const char* what);

// Throws what becomes EDGERUNNER_BUFFER_TOO_SMALL.
[[noreturn]] void refuse_buffer(std::size_t needed, std::size_t capacity);

// An array of the caller's, which may be NULL where it is empty.
template <typename T>
std::span<const T> array(const T* values, std::size_t count, const char* name) {
  if (count > 0) require(values, name);
  return {values, count};
}

// A text of the caller's, which must not be NULL.
std::string_view text(const char* bytes, std::size_t size, const char* name);

// Gives `values` to a buffer of the caller's as edgerunner.h says; `extra` elements of room beyond
// them are needed.
template <typename T>
void copy_out(std::span<const T> values, T* buffer, std::size_t capacity, std::size_t* count,
              std::size_t extra = 0) {
  require(count, "the count");
  *count = values.size();
  if (buffer == nullptr && capacity == 0) return;
  require(buffer, "the buffer");
  if (capacity < values.size() + extra) refuse_buffer(values.size() + extra, capacity);
  std::copy(values.begin(), values.end(), buffer);
}

// The same for a text, with a NUL at its end.
void copy_out(std::string_view text, char* buffer, std::size_t capacity, std::size_t* size);

}  // namespace edgerunner::c_api
