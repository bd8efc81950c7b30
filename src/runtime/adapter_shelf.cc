#include "runtime/adapter_shelf.h"

#include <fmt/format.h>

#include <cmath>

#include "edgerunner/error.h"
#include "gguf/file.h"

namespace edgerunner {
namespace {

// Sets that are kept for those who choose the same again. Scales come from requests, so there must
// be a bound; beyond it all are forgotten, and with them what is cached of their sequences.
constexpr std::size_t kMostSets = 1024;

void require_finite(float scale, const std::string& of) {
  if (std::isfinite(scale)) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the scale of {} is not a finite number", of));
}

}  // namespace

void AdapterShelf::load(std::span<const AdapterFile> files, const Decoder& decoder) {
  adapters_.reserve(files.size());  // their addresses are handed out
  for (const AdapterFile& file : files) {
    require_finite(file.scale, fmt::format("adapter {}", file.path.string()));
    adapters_.emplace_back(gguf::File::open(file.path), decoder);
    scales_.push_back(file.scale);
  }
}

std::shared_ptr<const AdapterSet> AdapterShelf::choose(
    const std::optional<std::vector<AdapterScale>>& wanted) {
  std::map<std::uint32_t, float> scales;
  if (!wanted) {
    for (std::uint32_t id = 0; id < scales_.size(); ++id) scales.emplace(id, scales_[id]);
  } else {
    for (const AdapterScale& use : *wanted) {
      if (use.id >= adapters_.size()) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("there is no adapter with id {}; {} were loaded, numbered from 0",
                                use.id, adapters_.size()));
      }
      require_finite(use.scale, fmt::format("adapter {}", use.id));
      if (!scales.emplace(use.id, use.scale).second) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("adapter {} is chosen twice; give each id once", use.id));
      }
    }
  }
  Choice choice;
  for (const auto& [id, scale] : scales) {
    if (scale != 0) choice.emplace_back(id, scale);
  }
  return choice.empty() ? nullptr : set_of(choice);
}

std::shared_ptr<const AdapterSet> AdapterShelf::set_of(const Choice& choice) {
  const std::lock_guard lock(mutex_);
  const auto found = sets_.find(choice);
  if (found != sets_.end()) return found->second;
  if (sets_.size() >= kMostSets) sets_.clear();
  auto set = std::make_shared<AdapterSet>();
  for (const auto& [id, scale] : choice) set->uses.push_back({&adapters_[id], scale});
  set->id = ++last_id_;
  return sets_.emplace(choice, std::move(set)).first->second;
}

std::vector<AdapterInfo> AdapterShelf::info() const {
  std::vector<AdapterInfo> infos;
  for (std::uint32_t id = 0; id < adapters_.size(); ++id) {
    const LoraAdapter& adapter = adapters_[id];
    infos.push_back({.id = id,
                     .path = adapter.path(),
                     .name = adapter.name(),
                     .scale = scales_[id],
                     .alpha = adapter.alpha(),
                     .rank = adapter.largest_rank()});
  }
  return infos;
}

std::vector<const LoraAdapter*> AdapterShelf::all() const {
  std::vector<const LoraAdapter*> all;
  for (const LoraAdapter& adapter : adapters_) all.push_back(&adapter);
  return all;
}

std::uint64_t AdapterShelf::bytes() const {
  std::uint64_t total = 0;
  for (const LoraAdapter& adapter : adapters_) total += adapter.bytes();
  return total;
}

std::uint32_t AdapterShelf::floats() const {
  std::uint32_t total = 0;
  for (const LoraAdapter& adapter : adapters_) total += adapter_floats(adapter.largest_rank());
  return total;
}

}  // namespace edgerunner
