#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "arch/decoder.h"
#include "backend/cpu/input_observer.h"
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
  std::uint32_t adapter_floats;
  const Kernels& kernels;
  const VectorKernels& vectors;
  const Plan& plan;
  Workspace& workspace;
  KvPool& cache;
  RopeTables& ropes;
  const Batch& batch;
  std::span<float> logits;
  std::span<float> hidden;  // where not empty, wanted of all rows instead of logits
  OperationTimes* times;    // null: not measured
  InputObserver* observer;  // null: nobody looks on
};

// The weights of the next products, in the order in which they are shared out.
struct Upcoming {
  std::array<const Matrix*, 3> weights{};  // null where there are fewer
  bool chained = false;                    // each share reads the same rows of all: gate and up
};

// Rows of floats that become the operand of products, normed first where a norm is given.
struct Preparation {
  const float* rows = nullptr;  // [rows, cols]; null: there is nothing to prepare
  std::uint32_t cols = 0;
  bool formats[kActivationFormats] = {};  // that the products' weights ask for
  std::span<const float> norm;
  std::span<const float> norm_bias;
  bool gelu = false;  // applied to the rows first
  Refinement refinement = Refinement::outliers;
  bool for_adapters = false;               // rows with adapters are wanted in f32 too
  std::span<const std::uint32_t> sources;  // where given, row i is made of row sources[i]
  Operation operation = Operation::other;
  Upcoming readers;
};

// A product that adapters may change, and its outputs.
struct Update {
  LoraTarget target = LoraTarget::q;
  float* out = nullptr;  // [rows, width]
  std::uint32_t width = 0;
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
  void multiply_groups(const MixtureSpec& spec, std::uint32_t rows, const Body& body);
  void combine(const MixtureSpec& spec, std::uint32_t row);
  void head();
  void hidden();

  // A pass that is measured runs every operation in loops of its own, so that each has its time.
  bool measured() const { return context_.times != nullptr; }
  // Ends an operation of the pass's account.
  void lap(Operation operation) {
    if (measured() && worker_.index() == 0) context_.times->lap(operation);
  }

  // Goes on with the rows whose logits are wanted alone.
  void narrow();

  void store(std::size_t layer);
  void store_unit(std::size_t layer, const PlanStore& to, std::uint32_t kv_head);
  // Whether attention writes each row's key and value itself, before it reads them: no other row
  // of the pass sees them.
  bool stores_as_it_attends() const {
    return !measured() && context_.plan.one_row_each() && rows_ == &context_.plan.all();
  }
  void attend(std::size_t layer, const Preparation& next);
  void attend_tiles(std::size_t layer, const Preparation& next);
  void attend_splits(std::size_t layer, const Preparation& next);
  AttentionTile tile(std::size_t layer, std::uint32_t kv_head, const PlanTile& place) const;
  void gather_queries(std::size_t layer, const PlanTile& place, std::uint32_t kv_head);
  void finish(std::size_t layer, const PlanTile& place, std::uint32_t kv_head,
              const float* records);

  // Adds weights * operand + bias, normed where a norm is given, to the residual stream.
  void add_output(std::size_t layer, LoraTarget target, const Matrix& weights, const Vector& bias,
                  const Vector& post_norm, Operation operation, const Preparation& next);
  // The same for outputs that stand in `branch`.
  void add_branch(const Vector& post_norm, Operation operation, const Preparation& next);
  void norm_whole_rows(const Vector& norm, const LayerSpec& shape, std::uint32_t heads,
                       float* rows);
  Epilogue gated() const;
  void multiply_gated(std::size_t layer, const Preparation& hidden);

  // Whether a row has an adapter that changes one of these products.
  bool adapts(std::size_t layer, std::initializer_list<LoraTarget> targets) const;
  // `wanted`, which is the operand of these products.
  Preparation for_adapters(Preparation wanted, std::size_t layer,
                           std::initializer_list<LoraTarget> targets) const;
  // out += scale * B (A x) in the rows whose adapters change the products, which have the same
  // operand.
  void adapt(std::size_t layer, std::span<const Update> updates, Operation operation);
  // One product's A x of some rows, or a share of its B (A x).
  void adapt_down(std::size_t layer, const PlanAdapted& rows, const Update& update,
                  std::uint32_t index);
  void adapt_up(std::size_t layer, const PlanAdapted& rows, const Update& update,
                std::uint32_t index, std::uint32_t begin);
  void adapt_embedding(const AdapterSet& set, TokenId token, std::uint32_t row);

  // The operand of `readers`' products; `operation` is what its time counts for.
  Preparation preparation(const float* rows, std::uint32_t cols,
                          std::initializer_list<const Matrix*> readers, Operation operation) const;
  // Of a layer's q, k and v; past the last layer, of the head.
  Preparation layer_operand(std::size_t layer) const;
  Preparation ffn_operand(std::size_t layer) const;
  // Prepares an operand, if any, in a loop of its own that shares out its rows; or, where it is
  // short, leaves it to each thread: it costs less than to hand it over.
  void will_read(const Preparation& wanted);
  void prepare(const Preparation& wanted);
  bool is_short(const Preparation& wanted) const;
  // The prepared operand; prepares it first if that has been left to this thread. To be called
  // inside of a loop, with an index of it: until that is done nobody changes the rows.
  const Operand& operand();
  void prepare_row(const Preparation& wanted, std::uint32_t row);
  void norm_row(const float* row, std::span<const float> norm, std::span<const float> bias,
                float* out) const;

  // A loop of `operation`, and then will_read(next), whose weights who has to wait fetches.
  template <class Body>
  void loop_then_read(std::uint32_t count, Operation operation, const Preparation& next,
                      const Body& body) {
    worker_.for_each(count, body, [&] { fetch(next.readers); });
    lap(operation);
    will_read(next);
  }
  // The same over ranges: body(begin, end).
  template <class Body>
  void ranges_then_read(std::uint32_t count, Operation operation, const Preparation& next,
                        const Body& body) {
    worker_.for_ranges(count, body, [&] { fetch(next.readers); });
    lap(operation);
    will_read(next);
  }
  // What a thread fetches into its level 2 cache of the weights that it will read next, while it
  // waits: a few microseconds' worth.
  static constexpr std::size_t kFetchedWaiting = 32768;
  void fetch(const Upcoming& next) const;
  // Where this thread begins to read the next weights, and where those end: of one matrix, or of
  // each that is chained.
  std::array<std::span<const std::byte>, 2> begins(const Upcoming& next) const;

  Activations activations(const Matrix& weights) const;
  Product product(const Matrix& weights, const Vector& bias, float* out, Epilogue epilogue) const;
  // silu(gate) * up or its like, in place of the gate.
  Product gated_product(const Product& gate, const Matrix& up, const Vector& bias) const;
  // Products that read the prepared operand, side by side; `next` is read after them, if anything.
  void multiply(std::span<const Product> products, Operation operation, const Preparation& next);
  // Tiles of kRowTile weight rows that are shared out together where rows are few.
  std::uint32_t unit_tiles() const;
  // To the observer.
  void show(std::span<const Product> products);
  void show_groups(const Matrix& experts, std::uint32_t rows);
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
  const Operand* operand_;  // the space's, or this thread's own
  Preparation pending_;     // where it has rows: of the own operand, to be done
};

}  // namespace edgerunner::cpu
