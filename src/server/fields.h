#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "server/json.h"

namespace edgerunner::server {

// The members of a request's object, checked as they are read: each throws an ApiError with status
// 400 that names the field. A member that is null counts as absent.
class Fields {
 public:
  // `path` stands before the names in messages: "stream_options.".
  explicit Fields(const Json& object, std::string path = "")
      : object_(object), path_(std::move(path)) {}

  const Json* find(std::string_view name) const;  // null where absent
  const Json& require(std::string_view name) const;

  std::optional<bool> boolean(std::string_view name) const;
  std::optional<double> number(std::string_view name, double low, double high) const;
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t low,
                                      std::int64_t high) const;
  std::optional<std::string> text(std::string_view name) const;
  std::optional<std::string> choice(std::string_view name,
                                    std::initializer_list<std::string_view> allowed) const;
  const Json* array(std::string_view name) const;
  const Json* object(std::string_view name) const;

  // Throws where the member is there and isn't what leaving it out means.
  void refuse_unless(std::string_view name, const Json& neutral, std::string_view advice) const;

  // The error that says what a member must be.
  [[noreturn]] void fail(std::string_view name, const std::string& problem) const;

 private:
  const Json& object_;
  std::string path_;
};

}  // namespace edgerunner::server
