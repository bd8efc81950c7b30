#include "arch/metadata.h"

#include <fmt/format.h>

#include <cmath>

#include "edgerunner/error.h"

namespace edgerunner {
namespace {

// No count of a real model comes near; products of two stay below 2^64.
constexpr std::uint64_t kMaxValue = std::uint64_t{1} << 31;

}  // namespace

Metadata::Metadata(const gguf::File& file)
    : file_(&file), architecture_(file.require_string("general.architecture")) {}

std::string Metadata::full_key(std::string_view key) const {
  return fmt::format("{}.{}", architecture_, key);
}

void Metadata::refuse(std::string_view key, std::string_view why) const {
  throw Error(ErrorCode::invalid_file,
              fmt::format("{}: metadata key '{}' {}", file_->name(), full_key(key), why));
}

void Metadata::unsupported(std::string_view what) const {
  throw Error(ErrorCode::unsupported, fmt::format("{}: {}", file_->name(), what));
}

std::optional<std::uint32_t> Metadata::find_uint(std::string_view key) const {
  const auto value = file_->get_uint(full_key(key));
  if (!value) return std::nullopt;
  if (*value > kMaxValue) refuse(key, fmt::format("is {}, which no model has", *value));
  return static_cast<std::uint32_t>(*value);
}

std::uint32_t Metadata::uint(std::string_view key) const {
  const auto value = find_uint(key);
  if (!value) refuse(key, "is missing");
  if (*value == 0) refuse(key, "is 0");
  return *value;
}

std::optional<double> Metadata::find_float(std::string_view key) const {
  const auto value = file_->get_float(full_key(key));
  if (value && !std::isfinite(*value)) refuse(key, "is not a finite number");
  return value;
}

std::optional<std::string_view> Metadata::find_string(std::string_view key) const {
  return file_->get_string(full_key(key));
}

std::vector<std::uint32_t> Metadata::per_layer(std::string_view key, std::uint32_t layers) const {
  const gguf::Value* value = file_->find(full_key(key));
  if (value == nullptr || value->type != gguf::ValueType::array) {
    return std::vector<std::uint32_t>(layers, uint(key));
  }
  const auto values = file_->get_ints(full_key(key)).value();
  if (values.size() != layers) {
    refuse(key, fmt::format("has {} elements for {} layers", values.size(), layers));
  }
  std::vector<std::uint32_t> result;
  for (const std::int64_t element : values) {
    if (element < 1 || static_cast<std::uint64_t>(element) > kMaxValue) {
      refuse(key, fmt::format("holds {}, which no layer has", element));
    }
    result.push_back(static_cast<std::uint32_t>(element));
  }
  return result;
}

}  // namespace edgerunner
