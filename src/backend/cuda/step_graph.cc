#include "backend/cuda/step_graph.h"

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>

#include "backend/cuda/device.h"

namespace edgerunner::cuda {
namespace {

// Numbers of sequences, greedy or not, that a server goes back and forth between.
constexpr std::size_t kMostKept = 8;

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
};
using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyGraph>;

// What `launch` launches on `stream`, or null.
Graph captured(cudaStream_t stream, const std::function<void()>& launch) {
  if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess) return {};
  cudaGraph_t graph = nullptr;
  try {
    launch();
  } catch (...) {
    cudaStreamEndCapture(stream, &graph);
    const Graph unwanted(graph);
    throw;
  }
  // A launch that failed is not in the graph.
  const bool launched = cudaPeekAtLastError() == cudaSuccess;
  const bool complete = cudaStreamEndCapture(stream, &graph) == cudaSuccess && launched;
  Graph result(graph);
  if (!complete) result.reset();
  return result;
}

}  // namespace

StepGraphs::~StepGraphs() {
  for (const Kept& kept : kept_) cudaGraphExecDestroy(kept.executable);
}

void StepGraphs::run(const StepKey& key, cudaStream_t stream, const std::function<void()>& launch) {
  Kept* kept = find(key);
  if (kept == nullptr && works_ && key == latest_) kept = capture(key, stream, launch);
  latest_ = key;
  if (kept == nullptr) return launch();
  kept->used = ++clock_;
  check(cudaGraphLaunch(kept->executable, stream), "starting a decoding step");
}

StepGraphs::Kept* StepGraphs::find(const StepKey& key) {
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) {
    return kept.used != 0 && kept.key == key;
  });
  return found == kept_.end() ? nullptr : &*found;
}

StepGraphs::Kept* StepGraphs::capture(const StepKey& key, cudaStream_t stream,
                                      const std::function<void()>& launch) {
  const Graph graph = captured(stream, launch);
  Kept* const kept = graph == nullptr ? nullptr : keep(key, graph.get(), stream);
  if (kept == nullptr) {
    works_ = false;
    cudaGetLastError();  // which has been dealt with
  }
  return kept;
}

StepGraphs::Kept* StepGraphs::keep(const StepKey& key, cudaGraph_t graph, cudaStream_t stream) {
  const bool made = std::exchange(made_, true);
  while (!made && kept_.size() < kMostKept) {
    Kept& next = kept_.emplace_back();
    if (cudaGraphInstantiate(&next.executable, graph, 0) != cudaSuccess) {
      kept_.pop_back();
      break;
    }
    check(cudaGraphUpload(next.executable, stream), "uploading a decoding step");
  }
  if (kept_.empty()) return nullptr;
  Kept& oldest = *std::min_element(kept_.begin(), kept_.end(),
                                   [](const Kept& a, const Kept& b) { return a.used < b.used; });
  oldest.used = 0;
  // A step of the same kernels takes the executable over as it is; any other needs a new one.
  cudaGraphExecUpdateResultInfo info{};
  if (cudaGraphExecUpdate(oldest.executable, graph, &info) != cudaSuccess) {
    cudaGetLastError();
    cudaGraphExecDestroy(std::exchange(oldest.executable, nullptr));
    if (cudaGraphInstantiate(&oldest.executable, graph, 0) != cudaSuccess) {
      kept_.erase(kept_.begin() + (&oldest - kept_.data()));
      return nullptr;
    }
  }
  oldest.key = key;
  return &oldest;
}

}  // namespace edgerunner::cuda
