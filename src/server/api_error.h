#pragma once

#include <exception>
#include <stdexcept>
#include <string>

namespace edgerunner::server {

struct HttpResponse;

// An answer that refuses, in the form that OpenAI's clients read.
struct ApiError : std::runtime_error {
  ApiError(unsigned http_status, std::string kind, const std::string& message,
           std::string field = "", std::string reason = "")
      : std::runtime_error(message),
        status(http_status),
        type(std::move(kind)),
        param(std::move(field)),
        code(std::move(reason)) {}

  unsigned status;
  std::string type;
  std::string param;  // the field; empty: null
  std::string code;   // empty: null
};

// 400, naming the field.
ApiError bad_request(const std::string& field, const std::string& message);

// What went wrong, as an answer: an ApiError as it is, an Error by its code, others as 500.
ApiError to_api_error(const std::exception_ptr& error);

std::string to_json_text(const ApiError& error);  // {"error":{...}}
HttpResponse to_response(const ApiError& error);

}  // namespace edgerunner::server
