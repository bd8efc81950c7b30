#pragma once

#include <cstdint>
#include <span>

#include "arch/decoder.h"
#include "backend/cpu/kv_pool.h"
#include "backend/cpu/matmul.h"
#include "backend/cpu/plan.h"
#include "backend/cpu/rope_table.h"
#include "backend/cpu/vector_kernels.h"
#include "backend/cpu/workspace.h"
#include "backend/executor.h"
#include "base/thread_pool.h"

namespace edgerunner::cpu {

// What the threads of a forward pass share.
struct PassContext {
  const Decoder& decoder;
  Precision precision;
  const Kernels& kernels;
  const VectorKernels& vectors;
  const Plan& plan;
  Workspace& workspace;
  KvPool& cache;
  RopeTables& ropes;
  const Batch& batch;
  std::span<float> logits;
  OperationTimes* times;  // null: not measured
};

// One thread's walk through a forward pass. All threads make the same calls in the same order, and
// touch shared rows only inside of loops that share them out.
class ForwardPass {
 public:
  ForwardPass(const PassContext& context, ThreadPool::Worker& worker);

  void run();

 private:
  void embed();
  void block(std::size_t layer);
  void attention(std::size_t layer);
  void feed_forward(std::size_t layer);

  void mixture(std::size_t layer);
  void shared_expert(const MixtureWeights& w);
  void group_by_expert(const MixtureSpec& spec);
  // Calls body(group, run) for every share of every group of rows, where run(experts, group, out,
  // epilogue) multiplies the group's rows with its expert, of `rows` weight rows.
  template <class Body>
  void multiply_groups(std::uint32_t rows, const Body& body);
  void combine(const MixtureSpec& spec, std::uint32_t row);
  void head();

  // Ends an operation of the pass's account.
  void lap(Operation operation) {
    if (context_.times != nullptr && worker_.index() == 0) context_.times->lap(operation);
  }

  // Goes on with the rows whose logits are wanted alone.
  void narrow();

  void store(std::size_t layer);
  void attend(std::size_t layer);
  void attend_tiles(std::size_t layer);
  void attend_splits(std::size_t layer);
  AttentionTile tile(std::size_t layer, std::uint32_t kv_head, const PlanTile& place) const;
  void gather_queries(std::size_t layer, const PlanTile& place, std::uint32_t kv_head);
  void finish(std::size_t layer, const PlanTile& place, std::uint32_t kv_head,
              const float* records);

  // Adds weights * rows + bias, normed where a norm is given, to the residual stream.
  void add_output(const float* rows, const Matrix& weights, const Vector& bias,
                  const Vector& post_norm);
  // The same for outputs that stand in `branch`.
  void add_branch(const Vector& post_norm);
  void norm_whole_rows(const Vector& norm, const LayerSpec& shape, std::uint32_t heads,
                       float* rows);
  Epilogue gated() const;

  // Prepares rows of floats as the operand of `weights`' products; normed first where a norm is
  // given. Afterwards `activations` describes it. With `sources`, row i is made of row sources[i].
  void prepare(const float* rows, std::uint32_t cols, std::span<const Matrix* const> weights,
               std::span<const float> norm, Refinement refinement = Refinement::outliers,
               std::span<const std::uint32_t> sources = {});
  Activations activations(const Matrix& weights) const;
  Product product(const Matrix& weights, const Vector& bias, float* out, Epilogue epilogue) const;
  // Products that read one operand: run side by side, or, `chained`, one after another on the same
  // rows of weights.
  void multiply(std::span<const Product> products, bool chained);
  // Weight rows, a multiple of kRowTile, that a thread multiplies at a time, where `count` matrices
  // of `rows` rows are shared out.
  std::uint32_t product_share(std::uint32_t rows, std::uint32_t count) const;

  const PassContext& context_;
  ThreadPool::Worker& worker_;
  const DecoderSpec& spec_;
  const Weights& weights_;
  const VectorKernels& vectors_;
  Workspace& space_;
  WorkerBuffers& own_;
  const PlanRows* rows_;
};

}  // namespace edgerunner::cpu
