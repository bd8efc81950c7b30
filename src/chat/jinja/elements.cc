#include "chat/jinja/elements.h"

#include <fmt/format.h>

#include <new>

#include "chat/jinja/unicode.h"

namespace edgerunner::jinja {
namespace {

Value characters(Heap& heap, std::string_view text) {
  const std::size_t count = count_code_points(text);
  List list{.items = heap.budget().array<Value>(count), .size = count};
  std::size_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t bytes = code_point_at(text, at).length;
    new (list.items + i) Value(Value::string(text.substr(at, bytes)));
    at += bytes;
  }
  return Value::object(Kind::list, heap.make(list));
}

Value rest_of(Heap& heap, Iterator& iterator) {
  const List rest{.items = iterator.list.items + iterator.next,
                  .size = iterator.list.size - iterator.next};
  iterator.next = iterator.list.size;
  return Value::object(Kind::list, heap.make(rest));
}

}  // namespace

bool Elements::is_iterable(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
    case Kind::string:
    case Kind::list:
    case Kind::tuple:
    case Kind::dict:
    case Kind::view:
    case Kind::range:
    case Kind::iterator:
    case Kind::loop:
      return true;
    default:
      return false;
  }
}

Elements::Elements(Heap& heap, const Value& value) : source_(value) {
  switch (value.kind()) {
    case Kind::undefined:
      return;
    case Kind::string:
      source_ = characters(heap, value.as_string());
      break;
    case Kind::dict:
      source_ = Value::object(Kind::view,
                              heap.make(View{.dict = value.as<Dict>(), .part = View::Part::keys}));
      break;
    case Kind::iterator:
      source_ = rest_of(heap, *value.as<Iterator>());
      break;
    case Kind::loop:
      fail_unsupported("going through 'loop' itself");
    default:
      if (!is_iterable(value)) {
        fail(fmt::format("a value of type '{}' can't be iterated over", type_name(value)));
      }
  }
  size_ = length(source_);
}

Value Elements::at(Heap& heap, std::size_t i) const {
  if (source_.is(Kind::range)) return Value::integer(source_.as<Range>()->at(i));
  if (!source_.is(Kind::view)) return source_.items()[i];
  const View& view = *source_.as<View>();
  const Dict::Entry& entry = view.dict->entries[i];
  if (view.part == View::Part::items) return heap.pair(entry.key, entry.value);
  return view.part == View::Part::keys ? entry.key : entry.value;
}

List Elements::all(Heap& heap) const {
  heap.budget().step(size_ / 8);
  if (source_.is_sequence()) return *source_.as<List>();
  List list{.items = heap.budget().array<Value>(size_), .size = size_};
  for (std::size_t i = 0; i < size_; ++i) new (list.items + i) Value(at(heap, i));
  return list;
}

bool has_length(const Value& value) {
  return Elements::is_iterable(value) && !value.is(Kind::iterator);
}

std::size_t length(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
      return 0;
    case Kind::string:
      return count_code_points(value.as_string());
    case Kind::list:
    case Kind::tuple:
      return value.items().size();
    case Kind::dict:
      return value.as<Dict>()->size;
    case Kind::view:
      return value.as<View>()->dict->size;
    case Kind::range:
      return value.as<Range>()->size;
    default:
      fail(fmt::format("a value of type '{}' has no length", type_name(value)));
  }
}

}  // namespace edgerunner::jinja
