#include <fmt/format.h>

#include <array>

#include "arch/family.h"
#include "edgerunner/error.h"

namespace edgerunner {
namespace {

constexpr std::array kFamilies = {
    Family{"llama", read_llama},
    Family{"mistral", read_llama},
    Family{"qwen2", read_qwen2},
    Family{"qwen3", read_qwen3},
};

}  // namespace

std::span<const Family> families() { return kFamilies; }

Decoder read_decoder(const gguf::File& file) {
  const Metadata metadata(file);
  for (const Family& family : families()) {
    if (family.architecture != metadata.architecture()) continue;
    TensorReader tensors(file);
    Decoder decoder = family.read(metadata, tensors);
    tensors.require_all_taken();
    return decoder;
  }
  std::string known;
  for (const Family& family : families()) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", family.architecture);
  }
  metadata.unsupported(fmt::format("architecture '{}' is not supported (EdgeRunner runs: {})",
                                   metadata.architecture(), known));
}

}  // namespace edgerunner
