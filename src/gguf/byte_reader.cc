#include "gguf/byte_reader.h"

#include "gguf/fail.h"

namespace edgerunner::gguf {

std::string to_string(const Part& part) {
  if (part.name.empty()) return std::string(part.what);
  return fmt::format("{} '{}'", part.what, part.name);
}

void ByteReader::fail_at_end(std::uint64_t count, const Part& part) const {
  fail(ErrorCode::invalid_file, file_,
       "{} needs {} bytes at offset {} but the file has {} left; the file is damaged or "
       "incomplete, so fetch it again",
       to_string(part), count, offset_, remaining());
}

}  // namespace edgerunner::gguf
