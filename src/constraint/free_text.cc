#include "constraint/free_text.h"

#include <vector>

namespace edgerunner {

NodeId text_up_to(GrammarBuilder& builder, std::string_view mark, NodeId next, NodeId without) {
  // A place for each beginning of the mark that the text may end with, as in the search of Knuth,
  // Morris and Pratt; the last place is behind the mark.
  std::vector<NodeId> places;
  for (std::size_t i = 0; i < mark.size(); ++i) places.push_back(builder.reserve());
  places.push_back(next);
  for (std::size_t matched = 0; matched < mark.size(); ++matched) {
    std::vector<ByteSet> sets(mark.size() + 1);
    for (unsigned byte = 0; byte < 256; ++byte) {
      const auto c = static_cast<char>(byte);
      std::size_t length = matched + 1;
      const auto fits = [&](std::size_t n) {
        return mark[n - 1] == c && mark.substr(0, matched).ends_with(mark.substr(0, n - 1));
      };
      while (length > 0 && !fits(length)) --length;
      sets[length] |= one_byte(c);
    }
    std::vector<NodeId> ways = {without};
    for (std::size_t to = 0; to < sets.size(); ++to) {
      ways.push_back(builder.bytes(sets[to], places[to]));
    }
    builder.define(places[matched], builder.either(ways));
  }
  return places.front();
}

NodeId any_text(GrammarBuilder& builder, NodeId next) {
  const NodeId loop = builder.reserve();
  builder.define(loop, builder.either({next, builder.bytes(byte_range(0, 255), loop)}));
  return loop;
}

}  // namespace edgerunner
