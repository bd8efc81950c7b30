#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace edgerunner::gguf {

// Keys that say which part of a split model a file is.
inline constexpr std::string_view kSplitNumberKey = "split.no";
inline constexpr std::string_view kSplitCountKey = "split.count";
inline constexpr std::string_view kSplitTensorsKey = "split.tensors.count";

// The path of shard `index` (from 0) of `count`: PREFIX-00001-of-00003.gguf.
std::filesystem::path shard_path(const std::filesystem::path& prefix, std::size_t index,
                                 std::size_t count);

// The prefix of a path that shard_path() makes for this index and count, or nullopt.
std::optional<std::filesystem::path> shard_prefix(const std::filesystem::path& path,
                                                  std::size_t index, std::size_t count);

}  // namespace edgerunner::gguf
