#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "arch/adapter_set.h"
#include "arch/decoder.h"
#include "edgerunner/adapter.h"
#include "edgerunner/types.h"

namespace edgerunner {

// The adapters that were loaded with a model, and the sets of them that its sequences use. The same
// choice gives the same set, so that sequences share what is cached of it. From any thread once
// they are loaded; must outlive the use of its sets.
class AdapterShelf {
 public:
  // Once. Throws as LoraAdapter does, and Error(invalid_argument) for a scale that is not finite.
  void load(std::span<const AdapterFile> files, const Decoder& decoder);

  // The chosen adapters; without a choice, all as they were loaded. Null: none applies. Throws
  // Error(invalid_argument) for an id that is not there or there twice, or a scale that is not
  // finite.
  std::shared_ptr<const AdapterSet> choose(const std::optional<std::vector<AdapterScale>>& wanted);

  std::vector<AdapterInfo> info() const;
  std::uint64_t bytes() const;
  std::uint32_t floats() const;                 // adapter_floats() of all together
  std::vector<const LoraAdapter*> all() const;  // in the order of their ids, as long as the shelf

 private:
  using Choice = std::vector<std::pair<std::uint32_t, float>>;  // ids, ascending, with their scales

  std::shared_ptr<const AdapterSet> set_of(const Choice& choice);

  std::vector<LoraAdapter> adapters_;
  std::vector<float> scales_;  // as they were loaded

  std::mutex mutex_;  // guards what follows
  std::map<Choice, std::shared_ptr<const AdapterSet>> sets_;
  std::uint64_t last_id_ = 0;
};

}  // namespace edgerunner
