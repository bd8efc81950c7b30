#include "arch/lora_adapter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "edgerunner/error.h"
#include "gguf/layout.h"

namespace edgerunner {
namespace {

// Adapters have ranks of 4 to 256; the bound keeps a file from asking for scratch without end.
constexpr std::uint64_t kMaxRank = 4096;

}  // namespace

class LoraAdapter::Reader {
 public:
  Reader(LoraAdapter& adapter, const gguf::File& file, const Decoder& decoder)
      : adapter_(adapter), file_(file) {
    list_targets(decoder);
  }

  void check_kind(const DecoderSpec& spec) const {
    const auto text = [this](std::string_view key) { return file_.get_string(key).value_or(""); };
    if (text("general.type") != "adapter") {
      refuse(
          ErrorCode::invalid_file,
          fmt::format("is no adapter: general.type is '{}', not 'adapter'", text("general.type")));
    }
    if (text("adapter.type") != "lora") {
      refuse(ErrorCode::unsupported,
             fmt::format("is an adapter of type '{}'; EdgeRunner applies 'lora' alone",
                         text("adapter.type")));
    }
    if (text("general.architecture") != spec.architecture) {
      refuse(ErrorCode::invalid_file,
             fmt::format("is an adapter for the architecture '{}', but the model's is '{}'; give "
                         "the model that it was trained on",
                         text("general.architecture"), spec.architecture));
    }
    if (file_.find("adapter.alora.invocation_tokens") != nullptr) {
      refuse(ErrorCode::unsupported,
             "is an activated LoRA (adapter.alora.invocation_tokens), which applies from certain "
             "tokens on; EdgeRunner applies adapters to whole sequences");
    }
  }

  void read() {
    const double alpha = file_.get_float("adapter.lora.alpha").value_or(0);
    if (!std::isfinite(alpha) || !std::isfinite(static_cast<float>(alpha))) {
      refuse(ErrorCode::invalid_file, "has an adapter.lora.alpha that is not finite");
    }
    adapter_.alpha_ = static_cast<float>(alpha);
    if (file_.tensors().empty()) refuse(ErrorCode::invalid_file, "holds no tensors");
    for (const gguf::Tensor& tensor : file_.tensors()) {
      const std::string_view name = tensor.name;
      if (name.ends_with(".lora_a")) {
        const std::string_view base = name.substr(0, name.size() - 7);
        read_pair(base, tensor, partner(tensor, base, ".lora_b"));
      } else if (name.ends_with(".lora_b")) {
        partner(tensor, name.substr(0, name.size() - 7), ".lora_a");
      } else {
        refuse(tensor, ErrorCode::unsupported, "is neither a .lora_a nor a .lora_b");
      }
    }
  }

 private:
  // What a tensor of the model is updated as: one matrix, or several where it is fused.
  struct Target {
    std::vector<LowRank*> updates;
    std::vector<const Matrix*> matrices;
    bool looked_up = false;  // an embedding, whose A is transposed
    bool expert = false;
  };

  void list_targets(const Decoder& decoder) {
    const Weights& w = decoder.weights;
    Target& embedding = targets_["token_embd.weight"];
    embedding = {{&adapter_.embedding_}, {&w.embedding}, true};
    targets_["output.weight"] = {{&adapter_.head_}, {&w.head}};
    adapter_.layers_.resize(w.layers.size());
    for (std::size_t i = 0; i < w.layers.size(); ++i) {
      const AttentionWeights& attention = w.layers[i].attention;
      const FeedForwardWeights& ffn = w.layers[i].feed_forward;
      add(i, LoraTarget::q, attention.q);
      add(i, LoraTarget::k, attention.k);
      add(i, LoraTarget::v, attention.v);
      add(i, LoraTarget::o, attention.o);
      add(i, LoraTarget::gate, ffn.gate);
      add(i, LoraTarget::up, ffn.up);
      add(i, LoraTarget::down, ffn.down);
      const MixtureWeights& m = ffn.mixture;
      for (const Matrix* matrix : {&m.router, &m.gate, &m.up, &m.down, &m.shared_gate, &m.shared_up,
                                   &m.shared_down, &m.shared_router}) {
        if (!matrix->empty()) targets_[matrix->name].expert = true;
      }
    }
  }

  void add(std::size_t layer, LoraTarget target, const Matrix& matrix) {
    if (matrix.empty()) return;
    Target& entry = targets_[matrix.name];
    entry.updates.push_back(&adapter_.layers_[layer][static_cast<std::size_t>(target)]);
    entry.matrices.push_back(&matrix);
  }

  const gguf::Tensor& partner(const gguf::Tensor& tensor, std::string_view base,
                              std::string_view suffix) const {
    const std::string name = fmt::format("{}{}", base, suffix);
    const gguf::Tensor* found = file_.find_tensor(name);
    if (found == nullptr) {
      refuse(tensor, ErrorCode::invalid_file, fmt::format("is there without its '{}'", name));
    }
    return *found;
  }

  void read_pair(std::string_view base, const gguf::Tensor& a, const gguf::Tensor& b) {
    const auto found = targets_.find(base);
    if (found == targets_.end()) {
      refuse(a, ErrorCode::invalid_file,
             fmt::format("is for '{}', which is no matrix of the model", base));
    }
    const Target& target = found->second;
    if (target.expert) {
      refuse(a, ErrorCode::unsupported,
             fmt::format("is for '{}'; EdgeRunner applies adapters to attention and dense "
                         "feed-forward networks, not to mixtures of experts",
                         base));
    }
    std::uint64_t rows = 0;
    for (const Matrix* matrix : target.matrices) rows += matrix->rows;
    const std::uint64_t cols = target.matrices.front()->cols;
    const std::uint64_t rank = target.looked_up ? a.shape[0] : a.shape[1];
    if (rank > kMaxRank) {
      refuse(a, ErrorCode::unsupported,
             fmt::format("has rank {}; EdgeRunner applies ranks up to {}", rank, kMaxRank));
    }
    if (target.looked_up) {
      check_shape(a, rank, rows);
      check_shape(b, rank, cols);
    } else {
      check_shape(a, cols, rank);
      check_shape(b, rank, rows);
    }
    require_supported(a);
    require_supported(b);
    store(target, a, b, static_cast<std::uint32_t>(rank));
  }

  void check_shape(const gguf::Tensor& tensor, std::uint64_t first, std::uint64_t second) const {
    if (tensor.rank <= 2 && tensor.shape[0] == first && tensor.shape[1] == second) return;
    refuse(
        tensor, ErrorCode::invalid_file,
        fmt::format("should have shape [{}, {}], but has {}; give the model that the adapter was "
                    "trained on",
                    first, second, gguf::shape_text(gguf::shape_of(tensor))));
  }

  void require_supported(const gguf::Tensor& tensor) const {
    const ElementTypeTraits& type = traits(tensor.type);
    if (type.supported) return;
    refuse(tensor, ErrorCode::unsupported,
           fmt::format("has element type {}, which EdgeRunner does not support", type.name));
  }

  void store(const Target& target, const gguf::Tensor& a, const gguf::Tensor& b,
             std::uint32_t rank) const {
    const float scale = adapter_.alpha_ == 0 ? 1 : adapter_.alpha_ / static_cast<float>(rank);
    if (target.looked_up) {
      const Matrix& table = *target.matrices.front();
      *target.updates.front() = {{a.name, a.type, table.rows, rank, a.data},
                                 {b.name, b.type, table.cols, rank, b.data},
                                 scale};
    } else {
      const Matrix all{b.name, b.type, static_cast<std::uint32_t>(b.shape[1]), rank, b.data};
      std::uint32_t row = 0;
      for (std::size_t i = 0; i < target.updates.size(); ++i) {
        const Matrix& w = *target.matrices[i];
        *target.updates[i] = {
            {a.name, a.type, rank, w.cols, a.data}, all.row_range(row, w.rows), scale};
        row += w.rows;
      }
    }
    adapter_.largest_rank_ = std::max(adapter_.largest_rank_, rank);
  }

  [[noreturn]] void refuse(ErrorCode code, std::string_view why) const {
    throw Error(code, fmt::format("{} {}", file_.name(), why));
  }
  [[noreturn]] void refuse(const gguf::Tensor& tensor, ErrorCode code, std::string_view why) const {
    throw Error(code, fmt::format("{}: adapter tensor '{}' {}", file_.name(), tensor.name, why));
  }

  LoraAdapter& adapter_;
  const gguf::File& file_;
  std::map<std::string_view, Target> targets_;  // by the name of the model's tensor
};

LoraAdapter::LoraAdapter(gguf::File file, const Decoder& decoder) : file_(std::move(file)) {
  Reader reader(*this, file_, decoder);
  reader.check_kind(decoder.spec);
  reader.read();
  name_ = file_.get_string("general.name").value_or("");
}

}  // namespace edgerunner
