#include "c_api/call.h"

#include <exception>
#include <new>
#include <stdexcept>

#include "edgerunner/error.h"

namespace edgerunner::c_api {
namespace {

class BufferTooSmall : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

std::string& last_error() {
  thread_local std::string message;
  return message;
}

edgerunner_status record(edgerunner_status status, const char* message) noexcept {
  try {
    last_error() = message;
  } catch (...) {
    last_error().clear();  // no memory for it
  }
  return status;
}

edgerunner_status status_of(ErrorCode code) {
  return static_cast<edgerunner_status>(static_cast<int>(code) + 1);
}
static_assert(static_cast<int>(ErrorCode::invalid_file) + 1 == EDGERUNNER_INVALID_FILE);
static_assert(static_cast<int>(ErrorCode::unsupported) + 1 == EDGERUNNER_UNSUPPORTED);
static_assert(static_cast<int>(ErrorCode::out_of_memory) + 1 == EDGERUNNER_OUT_OF_MEMORY);
static_assert(static_cast<int>(ErrorCode::invalid_argument) + 1 == EDGERUNNER_INVALID_ARGUMENT);
static_assert(static_cast<int>(ErrorCode::context_full) + 1 == EDGERUNNER_CONTEXT_FULL);
static_assert(static_cast<int>(ErrorCode::cancelled) + 1 == EDGERUNNER_CANCELLED);
static_assert(static_cast<int>(ErrorCode::device) + 1 == EDGERUNNER_DEVICE);
static_assert(static_cast<int>(ErrorCode::io) + 1 == EDGERUNNER_IO);

}  // namespace

edgerunner_status record_exception() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return record(status_of(error.code()), error.what());
  } catch (const BufferTooSmall& error) {
    return record(EDGERUNNER_BUFFER_TOO_SMALL, error.what());
  } catch (const std::bad_alloc&) {
    return record(EDGERUNNER_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return record(EDGERUNNER_INTERNAL, error.what());
  } catch (...) {
    return record(EDGERUNNER_INTERNAL, "an exception of an unknown type");
  }
}

void refuse(const char* name, const char* what) {
  throw Error(ErrorCode::invalid_argument, std::string(name) + " " + what);
}

void require(const void* argument, const char* name) {
  if (argument == nullptr) refuse(name, "must not be NULL");
}

void refuse_buffer(std::size_t needed, std::size_t capacity) {
  throw BufferTooSmall("the buffer holds " + std::to_string(capacity) + " and " +
                       std::to_string(needed) + " are needed; make it larger and call again");
}

std::string_view text(const char* bytes, std::size_t size, const char* name) {
  require(bytes, name);
  return {bytes, size};
}

void copy_out(std::string_view text, char* buffer, std::size_t capacity, std::size_t* size) {
  copy_out(std::span<const char>(text), buffer, capacity, size, 1);
  if (buffer != nullptr) buffer[text.size()] = '\0';
}

}  // namespace edgerunner::c_api

const char* edgerunner_last_error(void) { return edgerunner::c_api::last_error().c_str(); }

const char* edgerunner_status_name(edgerunner_status status) {
  switch (status) {
    case EDGERUNNER_OK:
      return "ok";
    case EDGERUNNER_INVALID_FILE:
      return "invalid_file";
    case EDGERUNNER_UNSUPPORTED:
      return "unsupported";
    case EDGERUNNER_OUT_OF_MEMORY:
      return "out_of_memory";
    case EDGERUNNER_INVALID_ARGUMENT:
      return "invalid_argument";
    case EDGERUNNER_CONTEXT_FULL:
      return "context_full";
    case EDGERUNNER_CANCELLED:
      return "cancelled";
    case EDGERUNNER_DEVICE:
      return "device";
    case EDGERUNNER_IO:
      return "io";
    case EDGERUNNER_BUFFER_TOO_SMALL:
      return "buffer_too_small";
    case EDGERUNNER_INTERNAL:
      return "internal";
  }
  return "unknown";
}

uint32_t edgerunner_abi_version(void) { return EDGERUNNER_ABI_VERSION; }

const char* edgerunner_version(void) { return EDGERUNNER_VERSION; }
