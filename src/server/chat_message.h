#pragma once

#include <string>
#include <vector>

#include "chat/output_parser.h"
#include "server/json.h"

namespace edgerunner::server {

// The assistant's message as it comes in.
class ChatMessage {
 public:
  struct ToolCall {
    std::string id;
    std::string name;
    std::string arguments;
  };

  explicit ChatMessage(const OutputFormat& format) : parser_(format) {}

  // What a piece of output adds to the message.
  OutputDelta push(const std::string& text);
  OutputDelta finish();

  bool calls_tools() const { return !calls_.empty(); }
  const std::string& content() const { return content_; }
  const std::string& reasoning() const { return reasoning_; }
  const std::vector<ToolCall>& calls() const { return calls_; }

  Json to_json() const;                          // {"role":"assistant","content":...}
  Json to_json(const OutputDelta& delta) const;  // of a chunk; after the delta was added

 private:
  OutputDelta add(OutputDelta delta);

  OutputParser parser_;
  std::string content_;
  std::string reasoning_;
  std::vector<ToolCall> calls_;
};

}  // namespace edgerunner::server
