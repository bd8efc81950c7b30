#include "server/lora_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/json.h"

namespace edgerunner::server {
namespace {

constexpr double kMostScale = 1000;  // far beyond any that makes sense

}  // namespace

std::optional<std::vector<AdapterScale>> read_lora(const Fields& fields, Engine& engine) {
  const Json* const list = fields.array("lora");
  if (list == nullptr) return std::nullopt;
  const std::size_t loaded = engine.info().adapters.size();
  std::vector<AdapterScale> adapters;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const Json& entry = (*list)[i];
    if (!entry.is_object()) fields.fail("lora", "must be an array of objects with id and scale");
    const Fields members(entry, fmt::format("lora[{}].", i));
    members.require("id");
    members.require("scale");
    const auto id = static_cast<std::uint32_t>(*members.integer("id", 0, INT32_MAX));
    if (id >= loaded) {
      members.fail("id",
                   fmt::format("is {}, but {} adapters are loaded, numbered from 0", id, loaded));
    }
    const bool twice = std::any_of(adapters.begin(), adapters.end(),
                                   [id](const AdapterScale& other) { return other.id == id; });
    if (twice) members.fail("id", fmt::format("is {} once more; list each adapter once", id));
    const auto scale = static_cast<float>(*members.number("scale", -kMostScale, kMostScale));
    adapters.push_back({.id = id, .scale = scale});
  }
  return adapters;
}

void handle_lora_adapters(Engine& engine, const std::shared_ptr<Exchange>& exchange) {
  Json list = Json::array();
  for (const AdapterInfo& adapter : engine.info().adapters) {
    list.push_back({{"id", adapter.id},
                    {"path", adapter.path},
                    {"scale", adapter.scale},
                    {"name", adapter.name},
                    {"rank", adapter.rank}});
  }
  exchange->respond({.body = to_text(list)});
}

}  // namespace edgerunner::server
