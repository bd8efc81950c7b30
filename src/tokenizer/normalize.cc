#include "tokenizer/normalize.h"

#include <utf8proc.h>

#include <algorithm>
#include <new>

#include "tokenizer/utf8.h"

namespace edgerunner {
namespace {

utf8proc_propval_t combining_class(utf8proc_int32_t code_point) {
  return utf8proc_get_property(code_point)->combining_class;
}

// Marks that follow each other are ordered by class. utf8proc would do so by exchanging neighbours,
// in quadratic time for a text of nothing but marks.
void order_marks(std::vector<std::int32_t>& code_points) {
  auto at = code_points.begin();
  while (at != code_points.end()) {
    if (combining_class(*at) == 0) {
      ++at;
      continue;
    }
    const auto starter = std::find_if(at, code_points.end(),
                                      [](utf8proc_int32_t c) { return combining_class(c) == 0; });
    std::stable_sort(at, starter, [](utf8proc_int32_t a, utf8proc_int32_t b) {
      return combining_class(a) < combining_class(b);
    });
    at = starter;
  }
}

}  // namespace

bool is_surely_nfc(std::string_view text) {
  // Code points below U+0300 neither combine nor decompose; U+0300 begins with CC 80.
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0xCC; });
}

std::vector<std::int32_t> to_nfd(std::span<const std::int32_t> code_points) {
  std::vector<std::int32_t> result;
  result.reserve(code_points.size());
  for (const std::int32_t code_point : code_points) {
    // A canonical decomposition has at most four code points.
    utf8proc_int32_t parts[4];
    int boundary = 0;
    const utf8proc_ssize_t count = utf8proc_decompose_char(
        code_point, parts, 4, static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE),
        &boundary);
    if (count < 1 || count > 4) {  // not assigned: as it is
      result.push_back(code_point);
    } else {
      result.insert(result.end(), parts, parts + count);
    }
  }
  order_marks(result);
  return result;
}

std::string to_nfc(std::string_view text) {
  std::vector<std::int32_t> code_points;
  code_points.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = first_utf8_unit(text.substr(at)).length;
    code_points.push_back(static_cast<std::int32_t>(utf8_code_point(&text[at], length)));
    at += length;
  }
  code_points = to_nfd(code_points);
  const utf8proc_ssize_t composed = utf8proc_normalize_utf32(
      code_points.data(), static_cast<utf8proc_ssize_t>(code_points.size()),
      static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  std::string result;
  result.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < composed; ++i) {
    append_utf8(result, static_cast<char32_t>(code_points[static_cast<std::size_t>(i)]));
  }
  return result;
}

}  // namespace edgerunner
