#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace edgerunner::cuda {

// What the launches of a decoding step depend on, beyond what an executor is made for: all else
// that changes from step to step stands in device memory.
struct StepKey {
  std::uint32_t rows = 0;   // a sequence each, all of whose logits are chosen from
  std::uint32_t parts = 0;  // BatchUpload::part_count()
  bool changed = false;     // ChoiceRows
  bool drawn = false;
  std::vector<bool> adapters;  // those that the batch uses

  bool operator==(const StepKey&) const = default;
};

// CUDA graphs of decoding steps: hundreds of launches, which cost the host more than a small model
// takes to compute, become one. Kernels that may begin early (chain.cuh) still do: captured from
// CUDA 12.3 on, programmatic dependent launches are edges of their own kind.
//
// A step is captured when its key comes a second time in a row, and replayed from then on. There is
// a fixed number of executable graphs, all made at the first capture, so that device memory is
// taken while a model is loaded: a new key takes over the one unused for longest.
class StepGraphs {
 public:
  StepGraphs() = default;
  ~StepGraphs();
  StepGraphs(const StepGraphs&) = delete;
  StepGraphs& operator=(const StepGraphs&) = delete;

  // Does on `stream` what `launch` does there, which launches kernels and nothing else, the same
  // whenever the key is the same. Where capturing fails, `launch` is called every time.
  void run(const StepKey& key, cudaStream_t stream, const std::function<void()>& launch);

  // Whether steps are replayed, or would be.
  bool works() const { return works_; }

 private:
  struct Kept {
    StepKey key;
    cudaGraphExec_t executable = nullptr;
    std::uint64_t used = 0;  // when, by clock_; 0: never
  };
  Kept* find(const StepKey& key);
  // The executable for a key, made from a captured step; null where that fails.
  Kept* keep(const StepKey& key, cudaGraph_t graph, cudaStream_t stream);
  Kept* capture(const StepKey& key, cudaStream_t stream, const std::function<void()>& launch);

  std::vector<Kept> kept_;
  StepKey latest_;
  std::uint64_t clock_ = 0;
  bool made_ = false;  // as many executables as there will be
  bool works_ = true;
};

}  // namespace edgerunner::cuda
