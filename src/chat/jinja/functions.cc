#include <fmt/format.h>

#include <array>
#include <cstdint>

#include "chat/jinja/builtins.h"
#include "chat/jinja/compare.h"
#include "chat/jinja/elements.h"
#include "chat/jinja/evaluator.h"
#include "chat/jinja/text.h"

namespace edgerunner::jinja {
namespace {

// What Jinja's sandbox allows.
constexpr std::uint64_t kLongestRange = 100'000;

Value range(Evaluator& evaluator, const Arguments& arguments) {
  const Parameters parameters("range", arguments, {"start", "stop", "step"}, 1);
  if (!arguments.named.empty()) fail("range takes no arguments by name");
  Range made{
      .start = 0, .stop = parameters.integer(0), .step = parameters.integer(2, 1), .size = 0};
  if (parameters.has(1)) {
    made.start = made.stop;
    made.stop = parameters.integer(1);
  }
  if (made.step == 0) fail("the step of a range can't be 0");
  const bool up = made.step > 0;
  if (up ? made.start < made.stop : made.start > made.stop) {
    const auto first = static_cast<std::uint64_t>(made.start);
    const auto last = static_cast<std::uint64_t>(made.stop);
    const std::uint64_t distance = up ? last - first : first - last;
    const auto stride = static_cast<std::uint64_t>(made.step);
    const std::uint64_t count = (distance - 1) / (up ? stride : -stride) + 1;
    if (count > kLongestRange) {
      fail(fmt::format("a range of {} numbers; the limit is {}", count, kLongestRange));
    }
    made.size = count;
  }
  return Value::object(Kind::range, evaluator.heap().make(made));
}

// dict(...) and namespace(...): a dict or pairs, then names.
Dict* fill_dict(Evaluator& evaluator, std::string_view name, const Arguments& arguments) {
  Heap& heap = evaluator.heap();
  if (arguments.positional.size() > 1) fail(fmt::format("{} takes at most 1 argument", name));
  Dict* const dict = heap.dict(arguments.named.size());
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional.front();
    if (source.is(Kind::dict)) {
      for (const auto& [key, value] : source.as<Dict>()->all()) heap.append(*dict, key, value);
    } else {
      const Elements pairs(heap, source);
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        const List pair = Elements(heap, pairs.at(heap, i)).all(heap);
        if (pair.size != 2) fail(fmt::format("{} needs pairs of a key and a value", name));
        check_hashable(pair.items[0]);
        heap.set(*dict, pair.items[0], pair.items[1]);
      }
    }
  }
  for (const auto& [key, value] : arguments.named) heap.set(*dict, Value::string(key), value);
  return dict;
}

Value dict(Evaluator& evaluator, const Arguments& arguments) {
  return Value::object(Kind::dict, fill_dict(evaluator, "dict", arguments));
}

Value namespace_(Evaluator& evaluator, const Arguments& arguments) {
  return Value::object(Kind::space, fill_dict(evaluator, "namespace", arguments));
}

Value cycler(Evaluator& evaluator, const Arguments& arguments) {
  if (arguments.positional.empty()) fail("cycler needs at least one item");
  if (!arguments.named.empty()) fail("cycler takes no arguments by name");
  Heap& heap = evaluator.heap();
  return Value::object(Kind::cycler,
                       heap.make(Cycler{.list = heap.copy(arguments.positional), .next = 0}));
}

Value joiner(Evaluator& evaluator, const Arguments& arguments) {
  const Parameters parameters("joiner", arguments, {"sep"});
  return Value::object(Kind::joiner,
                       evaluator.heap().make(Joiner{.separator = parameters.text(0, ", ")}));
}

Value raise_exception(Evaluator& evaluator, const Arguments& arguments) {
  const Parameters parameters("raise_exception", arguments, {"message"}, 1);
  throw Failure{.what = to_text(evaluator.budget(), parameters[0]), .raised = true};
}

Value strftime_now(Evaluator& evaluator, const Arguments& arguments) {
  const Parameters parameters("strftime_now", arguments, {"format"}, 1);
  return evaluator.heap().string(format_time(evaluator.now(), parameters.text(0)));
}

Value lipsum(Evaluator& /*evaluator*/, const Arguments& /*arguments*/) {
  fail_unsupported("lipsum, whose text is random");
}

constexpr std::array<Named<Function>, 8> kFunctions = {{
    {"range", range},
    {"dict", dict},
    {"namespace", namespace_},
    {"cycler", cycler},
    {"joiner", joiner},
    {"raise_exception", raise_exception},
    {"strftime_now", strftime_now},
    {"lipsum", lipsum},
}};

}  // namespace

const Named<Function>* find_function(std::string_view name) {
  return find_named(std::span<const Named<Function>>(kFunctions), name);
}

}  // namespace edgerunner::jinja
