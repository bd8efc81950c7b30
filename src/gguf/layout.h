#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "gguf/file.h"
#include "tensor/element_type.h"

namespace edgerunner::gguf {

// The file begins with these letters, its version, and its counts of tensors and of keys.
inline constexpr std::string_view kMagic = "GGUF";

// Limits of the GGUF specification.
inline constexpr std::size_t kMaxKeyBytes = 65535;
inline constexpr std::size_t kMaxTensorNameBytes = 64;
inline constexpr std::uint32_t kMaxRank = 4;

// Tensors begin at multiples of the alignment, a power of two.
inline constexpr std::string_view kAlignmentKey = "general.alignment";
inline constexpr std::uint64_t kDefaultAlignment = 32;
inline constexpr std::uint64_t kMinAlignment = 8;  // the specification's
// Not the specification's: the largest huge page of common machines is 1 GiB, and nobody aligns
// tensors further.
inline constexpr std::uint64_t kMaxAlignment = std::uint64_t{1} << 30;

bool is_alignment(std::uint64_t value);

// Bytes of a tensor whose first dimension is a multiple of the type's block length; nullopt where
// they don't fit 64 bits.
std::optional<std::uint64_t> tensor_bytes(ElementType type, std::span<const std::uint64_t> shape);

// The dimensions that it has.
std::span<const std::uint64_t> shape_of(const Tensor& tensor);

// For messages: "[32, 4]".
std::string shape_text(std::span<const std::uint64_t> shape);

}  // namespace edgerunner::gguf
