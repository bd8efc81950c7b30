#include "backend/cuda/step_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/cpu/sequences.h"
#include "backend/cuda/device.h"
#include "backend/token_chooser.h"
#include "cuda/small_shape.h"
#include "runtime/sampler.h"
#include "support/random_decoder.h"

// Decoding steps replayed as CUDA graphs: what is replayed, and that tokens stay those of forward
// passes launched kernel by kernel, which forward() is.

namespace edgerunner::test {
namespace {

class CudaStepGraph : public testing::Test {
 protected:
  static constexpr std::uint32_t kKeys = 12;

  void SetUp() override {
    if (!cuda_available()) GTEST_SKIP() << "no GPU";
    stream_.emplace();
    memory_ = cuda::DeviceBuffer((kKeys + 1) * sizeof(std::uint32_t));
    std::vector<std::uint32_t> words(kKeys + 1, 77);
    for (std::uint32_t i = 0; i < kKeys; ++i) words[i] = 100 + i;
    cuda::check(
        cudaMemcpy(memory_.as<void>(), words.data(), memory_.size(), cudaMemcpyHostToDevice),
        "uploading");
    cuda::check(cudaDeviceSynchronize(), "uploading");
  }

  // A step that copies word number `index` to the last; what is found there.
  std::uint32_t run(std::uint32_t index, bool capturable = true) {
    std::uint32_t* const last = memory_.as<std::uint32_t>() + kKeys;
    cuda::check(cudaMemsetAsync(last, 0, sizeof(*last), *stream_), "clearing");
    graphs_.run({.rows = index + 1}, *stream_, [&] {
      ++launches_;
      if (!capturable) cudaStreamSynchronize(*stream_);
      cudaMemcpyAsync(last, memory_.as<std::uint32_t>() + index, sizeof(*last),
                      cudaMemcpyDeviceToDevice, *stream_);
    });
    stream_->synchronize();
    std::uint32_t found = 0;
    cuda::check(cudaMemcpy(&found, last, sizeof(found), cudaMemcpyDeviceToHost), "fetching");
    return found;
  }

  std::optional<cuda::Stream> stream_;
  cuda::DeviceBuffer memory_;
  cuda::StepGraphs graphs_;
  int launches_ = 0;
};

TEST_F(CudaStepGraph, ReplaysAKeyThatHasComeTwiceInARow) {
  for (int i = 0; i < 5; ++i) EXPECT_EQ(run(3), 103U);
  EXPECT_EQ(launches_, 2);
  EXPECT_EQ(run(4), 104U);
  EXPECT_EQ(run(3), 103U);
  EXPECT_EQ(launches_, 3);
  EXPECT_TRUE(graphs_.works());
}

TEST_F(CudaStepGraph, MakesRoomForNewKeysByTheOneUnusedForLongest) {
  for (std::uint32_t key = 0; key < kKeys; ++key) {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(run(key), 100 + key);
  }
  EXPECT_EQ(launches_, 2 * static_cast<int>(kKeys));
  EXPECT_EQ(run(kKeys - 2), 100 + kKeys - 2);
  EXPECT_EQ(launches_, 2 * static_cast<int>(kKeys));
  EXPECT_EQ(run(0), 100U);
  EXPECT_EQ(launches_, 2 * static_cast<int>(kKeys) + 1);
}

TEST_F(CudaStepGraph, LaunchesWhatCannotBeCaptured) {
  for (int i = 0; i < 4; ++i) EXPECT_EQ(run(3, false), 103U);
  EXPECT_EQ(launches_, 5);
  EXPECT_FALSE(graphs_.works());
}

constexpr std::uint32_t kVocab = 700;
constexpr std::uint32_t kSequences = 6;
constexpr std::uint32_t kPagesEach = 6;

struct Model {
  std::string name;
  DecoderShape shape;
};

Model plain() { return {"Plain", small_shape(kVocab)}; }
Model normed_heads() {
  DecoderShape shape = small_shape(kVocab);
  shape.head_norms = true;
  shape.biases = true;
  shape.head_dim = 80;
  shape.rope = RopeLayout::half_split;
  return {"NormedHeads", shape};
}
Model experts() {
  DecoderShape shape = small_shape(kVocab);
  shape.mixture = {.count = 7, .used = 2, .ffn_dim = 96, .normalised = true};
  return {"Experts", shape};
}

// Sequences that take turns in bursts.
class CudaBursts : public testing::TestWithParam<Model> {
 protected:
  struct Burst {
    std::vector<std::uint32_t> sequences;
    std::uint32_t steps;
  };
  using Texts = std::vector<std::vector<TokenId>>;

  void SetUp() override {
    if (!cuda_available()) GTEST_SKIP() << "no GPU";
    model_ = std::make_unique<RandomDecoder>(GetParam().shape);
    executor_ = make_cuda_executor(model_->decoder(), {.precision = Precision::fast,
                                                       .kv = KvPrecision::f16,
                                                       .max_rows = 64,
                                                       .max_logit_rows = kSequences,
                                                       .pages = kSequences * kPagesEach,
                                                       .max_context = kPagesEach * kPageTokens});
    for (std::uint32_t i = 0; i < kSequences; ++i) {
      pages_.push_back(page_range(kPagesEach * i, kPagesEach));
    }
  }

  // Goes through all the bursts; take(batch, sequences, options, steps, texts) appends the tokens.
  template <typename Take>
  Texts decode(const std::vector<Burst>& bursts, const std::vector<SamplingOptions>& options,
               const Take& take) const {
    Texts texts;
    for (std::uint32_t i = 0; i < kSequences; ++i) texts.push_back({static_cast<TokenId>(31 * i)});
    for (const Burst& burst : bursts) take(burst, options, texts);
    return texts;
  }

  void batch(const std::vector<std::uint32_t>& sequences, const Texts& texts) {
    tokens_.clear();
    slices_.clear();
    wanted_.clear();
    for (const std::uint32_t i : sequences) {
      wanted_.push_back(static_cast<std::uint32_t>(tokens_.size()));
      tokens_.push_back(texts[i].back());
      slices_.push_back({1, static_cast<std::uint32_t>(texts[i].size() - 1), pages_[i]});
    }
  }

  Texts on_device(const std::vector<Burst>& bursts, const std::vector<SamplingOptions>& options) {
    return decode(bursts, options, [&](const Burst& burst, const auto& by, Texts& texts) {
      batch(burst.sequences, texts);
      std::vector<TokenChoice> choices;
      for (const std::uint32_t i : burst.sequences) {
        choices.push_back({&by[i], texts[i], texts[i].size()});
      }
      std::vector<TokenId> chosen(burst.steps * burst.sequences.size());
      executor_->chooser()->choose({tokens_, slices_, wanted_}, choices, burst.steps, chosen);
      auto next = chosen.begin();
      for (std::uint32_t step = 0; step < burst.steps; ++step) {
        for (const std::uint32_t i : burst.sequences) texts[i].push_back(*next++);
      }
    });
  }

  Texts on_host(const std::vector<Burst>& bursts, const std::vector<SamplingOptions>& options) {
    return decode(bursts, options, [&](const Burst& burst, const auto& by, Texts& texts) {
      std::vector<float> logits(burst.sequences.size() * kVocab);
      for (std::uint32_t step = 0; step < burst.steps; ++step) {
        batch(burst.sequences, texts);
        executor_->forward({tokens_, slices_, wanted_}, logits);
        auto row = logits.begin();
        for (const std::uint32_t i : burst.sequences) {
          const TokenId token =
              Sampler(by[i], kVocab).sample({row, row + kVocab}, texts[i], texts[i].size());
          texts[i].push_back(token);
          row += kVocab;
        }
      }
    });
  }

  // Some three hundred steps: sequences come and go, come back in another order, and pass four
  // borders of pages at different steps.
  static std::vector<Burst> bursts() {
    std::vector<Burst> all;
    for (int round = 0; round < 6; ++round) {
      for (const Burst& burst :
           {Burst{{0, 1}, 16}, Burst{{2, 0, 1}, 16}, Burst{{1, 2}, 3}, Burst{{0, 1, 2, 3, 4, 5}, 1},
            Burst{{5, 4, 3, 2, 1, 0}, 8}, Burst{{3, 5}, 7}}) {
        all.push_back(burst);
      }
    }
    return all;
  }

  std::unique_ptr<RandomDecoder> model_;
  std::unique_ptr<Executor> executor_;
  std::vector<std::vector<PageId>> pages_;
  std::vector<TokenId> tokens_;
  std::vector<SequenceSlice> slices_;
  std::vector<std::uint32_t> wanted_;
};

TEST_P(CudaBursts, ChooseWhatStepsLaunchedKernelByKernelDo) {
  const std::vector<SamplingOptions> greedy(kSequences);
  EXPECT_EQ(on_device(bursts(), greedy), on_host(bursts(), greedy));
}

TEST_P(CudaBursts, DrawWhatStepsLaunchedKernelByKernelDo) {
  std::vector<SamplingOptions> options(kSequences);
  for (std::uint32_t i = 0; i < kSequences; ++i) {
    options[i].temperature = i % 3 == 2 ? 0.0F : 0.9F;
    options[i].seed = i;
    options[i].top_k = i % 2 == 0 ? 40 : 0;
  }
  options[3].presence_penalty = 0.7F;
  options[4].top_p = 0.9F;
  EXPECT_EQ(on_device(bursts(), options), on_host(bursts(), options));
}

INSTANTIATE_TEST_SUITE_P(Models, CudaBursts, testing::Values(plain(), normed_heads(), experts()),
                         [](const auto& model) { return model.param.name; });

}  // namespace
}  // namespace edgerunner::test
