#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/output_parser.h"
#include "server/json.h"

namespace edgerunner::server {

// The output of /v1/responses as it comes in: items of reasoning, messages and calls of functions,
// and the events that tell of them.
class ResponseItems {
 public:
  using Emit = std::function<void(std::string_view type, Json event)>;

  // `emit` gets each event, less its type and number.
  explicit ResponseItems(Emit emit) : emit_(std::move(emit)) {}

  void add(const OutputDelta& delta);
  void finish(bool complete);  // false: the output was cut off

  Json to_json() const;  // the array of items

 private:
  enum class Kind { reasoning, message, call };
  struct Item {
    Kind kind;
    std::string id;
    std::string call_id;
    std::string name;
    std::string text;  // or arguments
    const char* status = "in_progress";
  };

  void add_text(Kind kind, const std::string& text);
  void add_call(const ToolCallDelta& call);
  void open(Kind kind, const std::string& name = "");
  void close(const char* status);
  Json part(const Item& item) const;
  Json item_json(const Item& item) const;
  Json place(bool with_part) const;  // what every event of the last item says

  Emit emit_;
  std::vector<Item> items_;
  bool open_ = false;  // the last one
};

}  // namespace edgerunner::server
