#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "arch/adapter_set.h"
#include "chat/chat_template.h"
#include "constraint/grammar.h"
#include "edgerunner/model.h"
#include "runtime/generation_sink.h"
#include "runtime/scheduler.h"
#include "runtime/task.h"
#include "server/metrics.h"

namespace edgerunner::server {

struct EngineOptions {
  std::string model_id;        // as clients call it
  std::uint32_t parallel = 8;  // sequences that run at once
  std::uint32_t queue = 64;    // that may wait for one of them to end
};

// The model that a server serves, and who may use it now. From any thread.
class Engine {
 public:
  // A place for one sequence, running or waiting; given back when it is destroyed.
  class Place {
   public:
    explicit Place(std::atomic<std::uint32_t>& taken) : taken_(&taken) {}
    Place(Place&& other) noexcept : taken_(std::exchange(other.taken_, nullptr)) {}
    Place& operator=(Place&&) = delete;
    ~Place() {
      if (taken_ != nullptr) --*taken_;
    }

   private:
    std::atomic<std::uint32_t>* taken_;
  };

  explicit Engine(const EngineOptions& options) : options_(options), started_(std::time(nullptr)) {}

  void set_model(Model model);  // once, when it has been loaded
  bool ready() const { return ready_; }

  // All of these throw ApiError(503) while the model is loading.
  Model& model();
  const Tokenizer& tokenizer() { return model().tokenizer(); }
  const ModelInfo& info() { return model().info(); }
  // Throws ApiError(400) where the model has no chat template that can be used.
  const ChatTemplate& chat_template();

  // Throws ApiError(429) where the places are taken.
  std::vector<Place> take_places(std::size_t count);
  std::uint32_t places_taken() const { return taken_; }

  // Throws as Model::generate does; afterwards the sink hears of everything. `grammar`: what the
  // text is held to, in place of what the options say; or null.
  void submit(std::span<const TokenId> prompt, const GenerateOptions& options,
              std::shared_ptr<const Grammar> grammar, std::shared_ptr<GenerationSink> sink);

  // For other work than generations.
  void submit(std::shared_ptr<Task> task);
  std::uint32_t embedding_size();
  std::shared_ptr<const AdapterSet> adapters();  // as they were loaded; null: none applies

  SchedulerStatus status();

  Metrics& metrics() { return metrics_; }
  const EngineOptions& options() const { return options_; }
  std::time_t started() const { return started_; }

 private:
  const EngineOptions options_;
  const std::time_t started_;
  Metrics metrics_;
  std::optional<Model> model_;
  std::optional<ChatTemplate> template_;
  std::string template_problem_;     // why there is none
  std::atomic<bool> ready_ = false;  // what stands above is set and doesn't change any more
  std::atomic<std::uint32_t> taken_ = 0;
};

}  // namespace edgerunner::server
