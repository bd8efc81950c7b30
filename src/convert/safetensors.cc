#include "convert/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/checked_math.h"
#include "edgerunner/error.h"

namespace edgerunner::convert {
namespace {

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr std::size_t kLengthBytes = 8;

struct Dtype {
  std::string_view name;
  std::uint64_t bytes;
  std::optional<ElementType> type = std::nullopt;
};

constexpr std::array kDtypes = {
    Dtype{"F32", 4, ElementType::f32},
    Dtype{"F16", 2, ElementType::f16},
    Dtype{"BF16", 2, ElementType::bf16},
    Dtype{"F64", 8},
    Dtype{"I64", 8},
    Dtype{"U64", 8},
    Dtype{"I32", 4},
    Dtype{"U32", 4},
    Dtype{"I16", 2},
    Dtype{"U16", 2},
    Dtype{"I8", 1},
    Dtype{"U8", 1},
    Dtype{"BOOL", 1},
    Dtype{"F8_E4M3", 1},
    Dtype{"F8_E5M2", 1},
};

// Reads the header of one file.
class Header {
 public:
  Header(std::string file, std::span<const std::byte> bytes) : file_(std::move(file)) {
    std::uint64_t length = 0;
    if (bytes.size() < kLengthBytes) fail("is too short for a safetensors file");
    std::memcpy(&length, bytes.data(), kLengthBytes);
    if (length > kMaxHeaderBytes || length > bytes.size() - kLengthBytes) {
      fail(fmt::format("claims a header of {} bytes, but the file has {}", length, bytes.size()));
    }
    text_ = bytes.subspan(kLengthBytes, length);
    data_ = bytes.subspan(kLengthBytes + length);
  }

  std::vector<SourceTensor> read() const {
    const nlohmann::json header = parse();
    std::vector<SourceTensor> tensors;
    for (const auto& [name, entry] : header.items()) {
      if (name != "__metadata__") tensors.push_back(tensor(name, entry));
    }
    require_apart(tensors);
    return tensors;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw Error(ErrorCode::invalid_file, fmt::format("{} {}", file_, what));
  }
  [[noreturn]] void fail(std::string_view tensor, std::string_view what) const {
    throw Error(ErrorCode::invalid_file, fmt::format("{}: tensor '{}' {}", file_, tensor, what));
  }

  nlohmann::json parse() const {
    std::set<std::string> names;
    std::string repeated;
    const auto watch = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
      if (depth == 1 && event == nlohmann::json::parse_event_t::key &&
          !names.insert(value.get<std::string>()).second) {
        repeated = value.get<std::string>();
      }
      return true;
    };
    const auto* begin = reinterpret_cast<const char*>(text_.data());
    nlohmann::json header;
    try {
      header = nlohmann::json::parse(begin, begin + text_.size(), watch);
    } catch (const nlohmann::json::exception& error) {
      fail(fmt::format("has a header that is not valid JSON: {}", error.what()));
    }
    if (!header.is_object()) fail("has a header that is not a JSON object");
    if (!repeated.empty()) fail(repeated, "is there twice");
    return header;
  }

  std::vector<std::uint64_t> numbers(std::string_view name, const nlohmann::json& entry,
                                     const char* key) const {
    const auto list = entry.find(key);
    if (list == entry.end() || !list->is_array()) fail(name, fmt::format("lacks '{}'", key));
    std::vector<std::uint64_t> result;
    for (const nlohmann::json& number : *list) {
      if (!number.is_number_unsigned()) {
        fail(name, fmt::format("has a '{}' that are not integers from 0", key));
      }
      result.push_back(number.get<std::uint64_t>());
    }
    return result;
  }

  SourceTensor tensor(const std::string& name, const nlohmann::json& entry) const {
    if (!entry.is_object()) fail(name, "is not described by an object");
    const auto dtype = entry.find("dtype");
    if (dtype == entry.end() || !dtype->is_string()) fail(name, "lacks 'dtype'");
    SourceTensor tensor;
    tensor.name = name;
    tensor.dtype = dtype->get<std::string>();
    const auto* known = std::find_if(kDtypes.begin(), kDtypes.end(),
                                     [&](const Dtype& d) { return d.name == tensor.dtype; });
    if (known == kDtypes.end()) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("{}: tensor '{}' has the type '{}', which is not supported", file_,
                              name, tensor.dtype));
    }
    tensor.type = known->type;
    tensor.shape = numbers(name, entry, "shape");
    std::optional<std::uint64_t> bytes = known->bytes;
    for (const std::uint64_t dimension : tensor.shape) {
      if (bytes) bytes = checked_multiply(*bytes, dimension);
    }
    const auto place = numbers(name, entry, "data_offsets");
    if (place.size() != 2 || place[0] > place[1] || place[1] > data_.size()) {
      fail(name, fmt::format("has a place outside of the file's {} bytes of data", data_.size()));
    }
    if (!bytes || *bytes != place[1] - place[0]) {
      fail(name, fmt::format("has {} bytes, which are not those of its type and shape",
                             place[1] - place[0]));
    }
    tensor.data = data_.subspan(place[0], place[1] - place[0]);
    return tensor;
  }

  void require_apart(const std::vector<SourceTensor>& tensors) const {
    std::vector<const SourceTensor*> sorted;
    for (const SourceTensor& tensor : tensors) {
      if (!tensor.data.empty()) sorted.push_back(&tensor);
    }
    std::sort(sorted.begin(), sorted.end(), [](const SourceTensor* a, const SourceTensor* b) {
      return a->data.data() < b->data.data();
    });
    for (std::size_t i = 1; i < sorted.size(); ++i) {
      const std::span<const std::byte> before = sorted[i - 1]->data;
      if (before.data() + before.size() > sorted[i]->data.data()) {
        fail(sorted[i]->name, fmt::format("shares bytes with '{}'", sorted[i - 1]->name));
      }
    }
  }

  std::string file_;
  std::span<const std::byte> text_;
  std::span<const std::byte> data_;
};

}  // namespace

Safetensors::Safetensors(const std::filesystem::path& path)
    : file_(path), tensors_(Header(path.string(), file_.bytes()).read()) {}

}  // namespace edgerunner::convert
