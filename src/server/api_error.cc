#include "server/api_error.h"

#include <new>

#include "edgerunner/error.h"
#include "server/http_message.h"
#include "server/json.h"

namespace edgerunner::server {
namespace {

ApiError from_error(const Error& error) {
  switch (error.code()) {
    case ErrorCode::invalid_argument:
    case ErrorCode::unsupported:
      return {400, "invalid_request_error", error.what()};
    case ErrorCode::context_full:
      return {400, "invalid_request_error", error.what(), "", "context_length_exceeded"};
    case ErrorCode::cancelled:
      return {503, "server_error", error.what(), "", "cancelled"};
    case ErrorCode::out_of_memory:
      return {503, "server_error", error.what(), "", "out_of_memory"};
    case ErrorCode::device:
    case ErrorCode::invalid_file:
    case ErrorCode::io:
      break;
  }
  return {500, "server_error", error.what()};
}

Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

ApiError bad_request(const std::string& field, const std::string& message) {
  return {400, "invalid_request_error", field.empty() ? message : field + " " + message, field};
}

ApiError to_api_error(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const ApiError& api_error) {
    return api_error;
  } catch (const Error& known) {
    return from_error(known);
  } catch (const std::bad_alloc&) {
    return {503, "server_error", "the server is out of memory", "", "out_of_memory"};
  } catch (const std::exception& unknown) {
    return {500, "server_error", unknown.what()};
  }
}

std::string to_json_text(const ApiError& error) {
  return to_text({{"error",
                   {{"message", error.what()},
                    {"type", error.type},
                    {"param", or_null(error.param)},
                    {"code", or_null(error.code)}}}});
}

HttpResponse to_response(const ApiError& error) {
  return {.status = error.status, .body = to_json_text(error)};
}

}  // namespace edgerunner::server
