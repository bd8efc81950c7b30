#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace edgerunner::hub {

// SHA-256 of bytes that come piece by piece.
class Sha256 {
 public:
  Sha256();

  void update(std::span<const std::byte> bytes);
  // 64 lower-case hexadecimal digits; nothing may be added afterwards.
  std::string finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

std::string sha256_of(std::string_view text);
// Throws Error(io) where the file can't be read.
std::string sha256_of_file(const std::filesystem::path& path);

// Whether `text` is 64 hexadecimal digits, none of them upper-case.
bool is_sha256(std::string_view text);

}  // namespace edgerunner::hub
