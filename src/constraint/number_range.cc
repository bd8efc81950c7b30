#include "constraint/number_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "edgerunner/error.h"

namespace edgerunner {
namespace {

constexpr std::size_t kMostDigits = 15;  // that a double tells apart

// A bound of numbers that are not negative, as digits: 12.5 is "12" and "5".
struct Decimal {
  std::string whole;
  std::string fraction;
  bool excluded = false;
};

Decimal to_decimal(double value, bool excluded) {
  if (!(value < 1e15)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a bound of {} is beyond 15 digits, which can't be enforced", value));
  }
  // The shortest digits that read back as the number, without an exponent.
  std::string text = fmt::format("{:.0f}", value);
  for (int digits = 1; std::stod(text) != value; ++digits) {
    text = fmt::format("{:.{}f}", value, digits);
  }
  const std::size_t point = text.find('.');
  Decimal made{.whole = text.substr(0, point), .fraction = "", .excluded = excluded};
  if (point != std::string::npos) made.fraction = text.substr(point + 1);
  return made;
}

// Numbers from `low` (absent: 0) to `high` (absent: without end), digit by digit: as long as the
// digits so far are those of a bound, the next may not pass it.
class Between {
 public:
  Between(GrammarBuilder& builder, std::optional<Decimal> low, std::optional<Decimal> high,
          bool integer, NodeId next)
      : builder_(builder),
        low_(std::move(low)),
        high_(std::move(high)),
        integer_(integer),
        next_(next) {}

  NodeId build() {
    std::vector<NodeId> ways;
    for (std::size_t length = 1; length <= kMostDigits; ++length) {
      if (low_ && length < low_->whole.size()) continue;
      if (high_ && length > high_->whole.size()) continue;
      const bool at_low = low_ && length == low_->whole.size();
      const bool at_high = high_ && length == high_->whole.size();
      length_ = length;
      whole_.clear();
      fraction_.clear();
      ways.push_back(whole(0, at_low, at_high));
    }
    return builder_.either(ways);
  }

 private:
  // The digits that may follow, with the states that they lead to.
  template <typename Follow>
  NodeId each_digit(char first, bool at_low, bool at_high, char low, char high, Follow follow) {
    std::map<NodeId, ByteSet> ways;
    for (char digit = first; digit <= '9'; ++digit) {
      if ((at_low && digit < low) || (at_high && digit > high)) continue;
      const NodeId way = follow(at_low && digit == low, at_high && digit == high);
      if (way != GrammarBuilder::kNothing) ways[way] |= one_byte(digit);
    }
    std::vector<NodeId> nodes;
    nodes.reserve(ways.size());
    for (const auto& [way, digits] : ways) nodes.push_back(builder_.bytes(digits, way));
    return builder_.either(nodes);
  }

  NodeId whole(std::size_t at, bool at_low, bool at_high) {
    if (at == length_) return point(at_low, at_high);
    const auto key = std::make_tuple(at, at_low, at_high);
    if (const auto known = whole_.find(key); known != whole_.end()) return known->second;
    const char first = at == 0 && length_ > 1 ? '1' : '0';
    const NodeId made = each_digit(first, at_low, at_high, at_low ? low_->whole[at] : '0',
                                   at_high ? high_->whole[at] : '9',
                                   [&](bool low, bool high) { return whole(at + 1, low, high); });
    return whole_[key] = made;
  }

  NodeId point(bool at_low, bool at_high) {
    const NodeId ends = may_end(0, at_low, at_high) ? next_ : GrammarBuilder::kNothing;
    if (integer_) return ends;
    return builder_.either({ends, builder_.literal(".", fraction(0, at_low, at_high))});
  }

  // Whether the number may end before digit `at` of its fraction.
  bool may_end(std::size_t at, bool at_low, bool at_high) const {
    const auto rest_is_zero = [at](const Decimal& bound) {
      return at >= bound.fraction.size() ||
             bound.fraction.find_first_not_of('0', at) == std::string::npos;
    };
    if (at_low && (!rest_is_zero(*low_) || low_->excluded)) return false;
    return !at_high || !high_->excluded || !rest_is_zero(*high_);
  }

  NodeId fraction(std::size_t at, bool at_low, bool at_high) {
    if (at == most_fraction()) return GrammarBuilder::kNothing;
    const auto key = std::make_tuple(at, at_low, at_high);
    if (const auto known = fraction_.find(key); known != fraction_.end()) return known->second;
    const auto digit = [at](const Decimal& bound) {
      return at < bound.fraction.size() ? bound.fraction[at] : '0';
    };
    const NodeId made = each_digit(
        '0', at_low, at_high, at_low ? digit(*low_) : '0', at_high ? digit(*high_) : '9',
        [&](bool low, bool high) {
          const NodeId ends = may_end(at + 1, low, high) ? next_ : GrammarBuilder::kNothing;
          return builder_.either({ends, fraction(at + 1, low, high)});
        });
    return fraction_[key] = made;
  }

  // As far as the bounds go, and then enough that an excluded bound can be passed; but no number
  // has more digits than a double tells apart, or it could be rounded to a bound.
  std::size_t most_fraction() const {
    std::size_t most = 0;
    if (low_) most = std::max(most, low_->fraction.size());
    if (high_) most = std::max(most, high_->fraction.size());
    return std::min(most + 6, kMostDigits - length_);
  }

  GrammarBuilder& builder_;
  std::optional<Decimal> low_;
  std::optional<Decimal> high_;
  bool integer_;
  NodeId next_;
  std::size_t length_ = 0;
  std::map<std::tuple<std::size_t, bool, bool>, NodeId> whole_;
  std::map<std::tuple<std::size_t, bool, bool>, NodeId> fraction_;
};

}  // namespace

NodeId number_between(GrammarBuilder& builder, const NumberBounds& bounds, bool integer,
                      NodeId next) {
  std::vector<NodeId> ways;
  const bool zero_from_below =
      !bounds.least || *bounds.least < 0 || (*bounds.least == 0 && !bounds.least_excluded);
  if (!bounds.most || *bounds.most >= 0) {
    std::optional<Decimal> low;
    std::optional<Decimal> high;
    if (!zero_from_below) low = to_decimal(*bounds.least, bounds.least_excluded);
    if (bounds.most) high = to_decimal(*bounds.most, bounds.most_excluded);
    ways.push_back(Between(builder, low, high, integer, next).build());
  }
  if (!bounds.least || *bounds.least < 0) {
    // Mirrored: "-" and a number above 0.
    Decimal low{.whole = "0", .fraction = "", .excluded = true};
    if (bounds.most && *bounds.most < 0) low = to_decimal(-*bounds.most, bounds.most_excluded);
    std::optional<Decimal> high;
    if (bounds.least) high = to_decimal(-*bounds.least, bounds.least_excluded);
    ways.push_back(builder.literal("-", Between(builder, low, high, integer, next).build()));
  }
  return builder.either(ways);
}

}  // namespace edgerunner
