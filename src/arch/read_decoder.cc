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
    Family{"qwen2moe", read_qwen2moe},
    Family{"qwen3", read_qwen3},
    Family{"qwen3moe", read_qwen3moe},
    Family{"gemma2", read_gemma2},
    Family{"gemma3", read_gemma3},
    Family{"phi3", read_phi3},
    Family{"granite", read_granite},
    Family{"olmo2", read_olmo2},
    Family{"smollm3", read_smollm3},
    Family{"starcoder2", read_starcoder2},
    Family{"stablelm", read_stablelm},
};

}  // namespace

std::span<const Family> families() { return kFamilies; }

Decoder read_decoder(const gguf::File& file) {
  if (file.get_string("general.type") == "adapter") {
    throw Error(ErrorCode::unsupported,
                fmt::format("{} is an adapter and no model; give it by --lora, together with its "
                            "model",
                            file.name()));
  }
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
