#include "convert/tensor_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "edgerunner/error.h"

namespace edgerunner::convert {
namespace {

constexpr std::uint64_t kMaxDimension = std::uint64_t{1} << 31;

// Where a tensor of the folder goes.
struct Place {
  std::uint64_t layer = 0;  // 1 + the layer's number; what has no layer comes first or last
  std::string name;         // in GGUF
  Rows rows = Rows::plain;
  std::optional<std::uint32_t> expert;

  bool operator<(const Place& other) const {
    return std::tie(layer, name) < std::tie(other.layer, other.name);
  }
};

// Takes a number and the dot after it from the front of a name.
std::optional<std::uint32_t> take_number(std::string_view& text) {
  std::uint32_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
  if (!text.starts_with('.')) return std::nullopt;
  text.remove_prefix(1);
  return number;
}

// Whether `module` is the role's; an asterisk in the role's name stands for an expert's number.
bool matches(std::string_view module, std::string_view role, std::optional<std::uint32_t>& expert) {
  const std::size_t star = role.find('*');
  if (star == std::string_view::npos) return module == role;
  if (!module.starts_with(role.substr(0, star))) return false;
  module.remove_prefix(star);
  expert = take_number(module);
  return expert && module == role.substr(star + 2);
}

class Planner {
 public:
  Planner(const ModelFolder& folder, const Family& family, const Dimensions& dimensions)
      : folder_(folder), family_(family), dimensions_(dimensions) {}

  std::vector<PlannedTensor> plan() {
    for (const auto& [name, tensor] : folder_.tensors()) {
      if (is_left_out(name)) continue;
      const Place place = place_of(name);
      auto& parts = parts_[place];
      const std::uint32_t index = place.expert.value_or(0);
      if (place.expert && index >= dimensions_.experts) refuse(name, "is of an expert too many");
      if (!parts.emplace(index, tensor).second) refuse(name, "is there twice under two names");
    }
    std::vector<PlannedTensor> planned;
    for (const auto& [place, parts] : parts_) planned.push_back(build(place, parts));
    return planned;
  }

 private:
  [[noreturn]] void refuse(std::string_view name, std::string_view why) const {
    throw Error(ErrorCode::invalid_file,
                fmt::format("{}: tensor '{}' {}", folder_.path().string(), name, why));
  }

  // Copies of what GGUF computes or ties.
  bool is_left_out(std::string_view name) const {
    return name.ends_with(".rotary_emb.inv_freq") ||
           (name == "lm_head.weight" && dimensions_.tied_head);
  }

  Place place_of(std::string_view name) const {
    if (name == "model.embed_tokens.weight") return {0, "token_embd.weight"};
    if (name == "model.norm.weight") return {~std::uint64_t{1}, "output_norm.weight"};
    if (name == "model.norm.bias") return {~std::uint64_t{1}, "output_norm.bias"};
    if (name == "lm_head.weight") return {~std::uint64_t{0}, "output.weight"};
    constexpr std::string_view kLayers = "model.layers.";
    if (name.starts_with(kLayers)) {
      std::string_view rest = name.substr(kLayers.size());
      const auto layer = take_number(rest);
      const std::size_t dot = rest.rfind('.');
      if (layer && *layer < dimensions_.layers && dot != std::string_view::npos) {
        const std::string_view kind = rest.substr(dot + 1);
        if (auto place = find_role(rest.substr(0, dot));
            place && (kind == "weight" || kind == "bias")) {
          place->layer = 1 + std::uint64_t{*layer};
          place->name = fmt::format("blk.{}.{}.{}", *layer, place->name, kind);
          return *place;
        }
      }
    }
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: tensor '{}' has no place in {} as EdgeRunner knows it",
                            folder_.path().string(), name, family_.class_name));
  }

  std::optional<Place> find_role(std::string_view module) const {
    for (const std::span<const Role> roles : {family_.norms, kRoles}) {
      for (const Role& role : roles) {
        std::optional<std::uint32_t> expert;
        if (matches(module, role.hugging_face, expert)) {
          return Place{0, std::string(role.gguf), role.rows, expert};
        }
      }
    }
    return std::nullopt;
  }

  using Parts = std::map<std::uint32_t, const SourceTensor*>;  // by expert

  void check(const Place& place, const Parts& parts) const {
    const SourceTensor& first = *parts.begin()->second;
    if (place.expert && parts.size() != dimensions_.experts) {
      refuse(first.name, fmt::format("is one of {} experts, but there are {}", dimensions_.experts,
                                     parts.size()));
    }
    for (const auto& [index, part] : parts) {
      if (!part->type) {
        throw Error(ErrorCode::unsupported,
                    fmt::format("{}: tensor '{}' is {}; weights must be F32, F16 or BF16",
                                folder_.path().string(), part->name, part->dtype));
      }
      if (part->shape.empty() || part->shape.size() > 2 ||
          (place.expert && part->shape.size() != 2)) {
        refuse(part->name, fmt::format("has {} dimensions", part->shape.size()));
      }
      for (const std::uint64_t dimension : part->shape) {
        if (dimension == 0 || dimension > kMaxDimension) {
          refuse(part->name, fmt::format("has the shape [{}]", fmt::join(part->shape, ", ")));
        }
      }
      if (part->shape != first.shape || part->type != first.type) {
        refuse(part->name, "differs from the other experts in shape or type");
      }
    }
  }

  // Rows of a head for which GGUF has another order; 0 where it has not.
  std::uint64_t head_rows(const Place& place, const SourceTensor& tensor) const {
    if (!family_.interleaved || place.rows == Rows::plain) return 0;
    const std::uint64_t heads =
        place.rows == Rows::query ? dimensions_.heads : dimensions_.kv_heads;
    if (dimensions_.head_dim % 2 != 0 || tensor.shape[0] != heads * dimensions_.head_dim) {
      refuse(tensor.name, fmt::format("has {} rows, not {} heads of an even {}", tensor.shape[0],
                                      heads, dimensions_.head_dim));
    }
    return dimensions_.head_dim;
  }

  PlannedTensor build(const Place& place, const Parts& parts) const {
    check(place, parts);
    const SourceTensor& first = *parts.begin()->second;
    const std::uint64_t head = head_rows(place, first);
    const bool is_matrix = first.shape.size() == 2 && first.shape[0] != 1;
    const std::uint64_t cols = first.shape.back();

    PlannedTensor planned;
    planned.name = place.name;
    planned.shape.push_back(cols);
    if (is_matrix || place.expert) planned.shape.push_back(first.shape[0]);
    if (place.expert) planned.shape.push_back(parts.size());
    const bool is_router = place.name.find("ffn_gate_inp") != std::string::npos;
    if (planned.shape.size() > 1 && !is_router) planned.natural = *first.type;

    // The values of a bias that is put in another order are rows of their own.
    const bool is_split = head != 0 && first.shape.size() == 1;
    const std::uint64_t rows = is_split ? cols : first.shape.size() == 2 ? first.shape[0] : 1;
    RowSource& source = planned.source;
    source.type = *first.type;
    source.cols = is_split ? 1 : cols;
    source.rows = rows * parts.size();
    if (place.name.ends_with("_norm.weight")) source.offset = family_.norm_offset;
    std::vector<std::span<const std::byte>> data;
    for (const auto& [index, part] : parts) data.push_back(part->data);
    source.row = [data = std::move(data), rows, head,
                  bytes = row_bytes(*first.type, source.cols)](std::uint64_t row) {
      std::uint64_t within = row % rows;
      if (head != 0) {
        // Row 2 i + j of a head here is row i + j * head / 2 there.
        const std::uint64_t r = within % head;
        within = within - r + r / 2 + (r % 2) * (head / 2);
      }
      return data[row / rows].subspan(within * bytes, bytes);
    };
    return planned;
  }

  const ModelFolder& folder_;
  const Family& family_;
  const Dimensions& dimensions_;
  std::map<Place, Parts> parts_;
};

PlannedTensor factor_tensor(const FactorTensor& factor) {
  PlannedTensor planned;
  planned.name = factor.name;
  planned.shape = {factor.values.size()};
  planned.source.rows = 1;
  planned.source.cols = factor.values.size();
  planned.source.row = [&factor](std::uint64_t) { return std::as_bytes(std::span(factor.values)); };
  return planned;
}

}  // namespace

std::vector<PlannedTensor> plan_tensors(const ModelFolder& folder, const Family& family,
                                        const Dimensions& dimensions,
                                        const std::vector<FactorTensor>& factors) {
  std::vector<PlannedTensor> planned = Planner(folder, family, dimensions).plan();
  for (const FactorTensor& factor : factors) planned.push_back(factor_tensor(factor));
  return planned;
}

}  // namespace edgerunner::convert
