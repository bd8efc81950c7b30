#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/shared_data.h"

namespace edgerunner::test {

// Reference vectors of the block formats: NAME.json describes what stands where in NAME.bin.
class QuantVectors {
 public:
  explicit QuantVectors(const std::string& name) {
    const std::filesystem::path folder = shared_dir() / "fixtures" / "quant";
    std::ifstream json(folder / (name + ".json"));
    description_ = nlohmann::json::parse(json);
    std::ifstream binary(folder / (name + ".bin"), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(binary), {}};
    data_.resize(text.size());
    std::memcpy(data_.data(), text.data(), text.size());
  }

  const nlohmann::json& description() const { return description_; }
  const nlohmann::json& entries() const { return description_.at("entries"); }

  std::span<const std::byte> bytes(std::size_t offset, std::size_t count) const {
    if (offset + count > data_.size()) throw std::runtime_error("reference vectors are cut short");
    return std::span(data_).subspan(offset, count);
  }

  std::vector<float> floats(std::size_t offset, std::size_t count) const {
    std::vector<float> values(count);
    const auto raw = bytes(offset, count * sizeof(float));
    std::memcpy(values.data(), raw.data(), raw.size());
    return values;
  }

 private:
  nlohmann::json description_;
  std::vector<std::byte> data_;
};

}  // namespace edgerunner::test
