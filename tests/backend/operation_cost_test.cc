#include "backend/operation_cost.h"

#include <gmock/gmock.h>

#include <cmath>

#include "support/lora_fixture.h"
#include "support/model_fixture.h"
#include "support/random_decoder.h"
#include "support/shared_data.h"

namespace edgerunner::test {
namespace {

// Quantised weights meet 8-bit activations.
class Integers final : public Profilable {
 public:
  void record(OperationTimes*) override {}
  Arithmetic arithmetic(ElementType weights, std::uint32_t) const override {
    return weights == ElementType::f32 ? Arithmetic::f32 : Arithmetic::int8;
  }
  MachineLimits measure_limits() override { return {}; }
};

struct OneSequence {
  OneSequence(std::uint32_t rows, std::uint32_t start, std::vector<std::uint32_t> wanted)
      : tokens(rows), logit_rows(std::move(wanted)), slice{rows, start, {}} {}
  Batch batch() const { return {tokens, {&slice, 1}, logit_rows}; }

  std::vector<TokenId> tokens;
  std::vector<std::uint32_t> logit_rows;
  SequenceSlice slice;
};

OperationCosts costs_of(const Decoder& decoder, const OneSequence& sequence,
                        double cache_token_bytes) {
  const Integers backend;
  OperationCosts costs{};
  CostModel(decoder, backend, cache_token_bytes).add(sequence.batch(), costs);
  return costs;
}

const OperationCost& at(const OperationCosts& costs, Operation operation) {
  return costs[static_cast<std::size_t>(operation)];
}

double int8(const OperationCost& cost) {
  return cost.operations[static_cast<std::size_t>(Arithmetic::int8)];
}

double f32(const OperationCost& cost) {
  return cost.operations[static_cast<std::size_t>(Arithmetic::f32)];
}

TEST(OperationCost, WeightsOfATokenAreTheBytesOfTheFilesTensors) {
  if (!has_shared_data()) GTEST_SKIP() << "no ../shared";
  for (const char* name : {"llama-gqa-256x1-q4k", "llama-gqa-64-bf16", "llama-gqa-untied",
                           "llama-attn-bias", "qwen2", "qwen3"}) {
    const ModelFixture fixture = load_fixture(name);
    double expected = 0;
    bool tied = true;
    for (const gguf::Tensor& tensor : fixture.file.tensors()) {
      expected += static_cast<double>(tensor.data.size());
      if (tensor.name == "output.weight") tied = false;
    }
    // Of the embedding one row is looked up; where it is the head too, all of it is read.
    const Matrix& table = fixture.decoder.weights.embedding;
    const auto row = static_cast<double>(row_bytes(table.type, table.cols));
    expected += row;
    if (!tied) expected -= row * table.rows;
    double bytes = 0;
    for (const OperationCost& cost : costs_of(fixture.decoder, OneSequence(1, 0, {0}), 100)) {
      bytes += cost.weight_bytes;
    }
    EXPECT_EQ(bytes, expected) << name;
  }
}

TEST(OperationCost, CountsEveryMultiplyAddOfAPrompt) {
  const DecoderShape shape{.layers = 1, .type = ElementType::q8_0};
  const RandomDecoder model(shape);
  // Of a single layer only the rows that want logits go on after the keys and values.
  const OperationCosts costs = costs_of(model.decoder(), OneSequence(10, 5, {9}), 1280);
  const double q = shape.heads * shape.head_dim;
  const double kv = shape.kv_heads * shape.head_dim;
  EXPECT_EQ(int8(at(costs, Operation::qkv)), 2.0 * shape.dim * (q + 2 * kv * 10));
  EXPECT_EQ(int8(at(costs, Operation::attention_output)), 2.0 * shape.dim * q);
  EXPECT_EQ(int8(at(costs, Operation::gate_up)), 2.0 * shape.dim * shape.ffn_dim * 2);
  EXPECT_EQ(int8(at(costs, Operation::head)), 2.0 * shape.dim * shape.vocab);
  // The last row sees 15 positions; a token takes 10 bytes a number in the cache.
  EXPECT_EQ(f32(at(costs, Operation::attention)), 4.0 * q * 15);
  EXPECT_EQ(at(costs, Operation::attention).cache_bytes, 2 * kv * 15 * (1280 / (2 * kv)));
  EXPECT_EQ(at(costs, Operation::rope_and_cache).cache_bytes, 10 * 1280);
}

OperationCosts costs_with(const LoraFixture& fixture, const AdapterSet* adapters,
                          std::uint32_t rows) {
  OneSequence sequence(rows, 0, {rows - 1});
  sequence.slice.adapters = adapters;
  return costs_of(fixture.decoder, sequence, 100);
}

TEST(OperationCost, AdaptersOfATokenAreTheBytesOfTheirTensors) {
  for (const char* name : {"llama", "phi3", "starcoder2"}) {
    const LoraFixture fixture(name);
    const AdapterSet& all = fixture.answers.back().adapters;
    double expected = 0;
    for (const AdapterSet::Use& use : all.uses) {
      const gguf::File file = gguf::File::open(use.adapter->path());
      for (const gguf::Tensor& tensor : file.tensors()) {
        expected += static_cast<double>(tensor.data.size());
      }
      // Of the embedding's A one row is looked up.
      const Matrix& table = use.adapter->embedding().a;
      if (table.empty()) continue;
      expected -= static_cast<double>(row_bytes(table.type, table.cols)) * (table.rows - 1);
    }
    OperationCost without;
    OperationCost with;
    for (const OperationCost& cost : costs_with(fixture, nullptr, 1)) without += cost;
    for (const OperationCost& cost : costs_with(fixture, &all, 1)) with += cost;
    EXPECT_EQ(with.weight_bytes - without.weight_bytes, expected) << name;
    EXPECT_EQ(with.cache_bytes, without.cache_bytes) << name;
  }
}

TEST(OperationCost, CountsTheMultiplyAddsOfAnAdapter) {
  const LoraFixture fixture("starcoder2");
  const AdapterSet& all = fixture.answers.back().adapters;
  const OperationCosts without = costs_with(fixture, nullptr, 10);
  const OperationCosts with = costs_with(fixture, &all, 10);
  const auto added = [&](Operation operation) {
    return f32(at(with, operation)) - f32(at(without, operation));
  };
  // Rank 5, 2 layers: the second's last row goes on alone. 4 heads and 2 of keys, of 8 numbers.
  EXPECT_EQ(added(Operation::attention_output), 2.0 * 5 * (32 + 32) * (10 + 1));
  EXPECT_EQ(added(Operation::qkv), 2.0 * 5 * ((32 + 32) * (10 + 1) + 2 * (32 + 16) * (10 + 10)));
  EXPECT_EQ(added(Operation::head), 0);
}

TEST(OperationCost, AttentionSeesNoFartherThanItsWindow) {
  const DecoderShape shape{.layers = 2, .window = 4, .type = ElementType::q8_0};
  const RandomDecoder model(shape);
  const OperationCosts costs = costs_of(model.decoder(), OneSequence(3, 2, {0, 2}), 512);
  const double q = shape.heads * shape.head_dim;
  // Rows at positions 2, 3, 4 see 3, 4, 4 positions; both layers go through all of them.
  EXPECT_EQ(f32(at(costs, Operation::attention)), 2 * 4.0 * q * (3 + 4 + 4));
  EXPECT_EQ(at(costs, Operation::attention).cache_bytes, 512 * 5);
}

TEST(OperationCost, TheSlowestUnitBoundsTheTime) {
  const MachineLimits limits{.read_bytes = 10, .operations = {100, 50, 20}};
  OperationCost cost{.weight_bytes = 20};
  EXPECT_EQ(least_time(cost, limits).unit, TimeBound::Unit::memory);
  EXPECT_EQ(least_time(cost, limits).seconds, 2);
  cost.operations = {300, 0, 10};
  EXPECT_EQ(least_time(cost, limits).unit, TimeBound::Unit::int8);
  EXPECT_EQ(least_time(cost, limits).seconds, 3.5);
  EXPECT_EQ(least_time({}, limits).unit, TimeBound::Unit::none);
}

}  // namespace
}  // namespace edgerunner::test
