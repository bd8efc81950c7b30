#include "gguf/split.h"

#include <fmt/format.h>

#include <string_view>

namespace edgerunner::gguf {
namespace {

std::string suffix(std::size_t index, std::size_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", index + 1, count);
}

}  // namespace

std::filesystem::path shard_path(const std::filesystem::path& prefix, std::size_t index,
                                 std::size_t count) {
  std::filesystem::path path = prefix;
  path += suffix(index, count);
  return path;
}

std::optional<std::filesystem::path> shard_prefix(const std::filesystem::path& path,
                                                  std::size_t index, std::size_t count) {
  const std::string text = path.string();
  const std::string end = suffix(index, count);
  if (text.size() < end.size() || text.compare(text.size() - end.size(), end.size(), end) != 0) {
    return std::nullopt;
  }
  return text.substr(0, text.size() - end.size());
}

}  // namespace edgerunner::gguf
