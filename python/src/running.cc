#include "running.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <vector>

#include "bindings.h"

namespace nb = nanobind;

namespace edgerunner::python {
namespace {

nb::dict to_dict(const Summary& summary) {
  nb::dict dict;
  dict["finish_reason"] = name(summary.finish_reason);
  dict["prompt_tokens"] = summary.prompt_tokens;
  dict["reused_tokens"] = summary.reused_tokens;
  dict["generated_tokens"] = summary.generated_tokens;
  dict["drafted_tokens"] = summary.drafted_tokens;
  dict["accepted_tokens"] = summary.accepted_tokens;
  dict["context_shifts"] = summary.context_shifts;
  dict["prefill_seconds"] = summary.prefill_seconds;
  dict["decode_seconds"] = summary.decode_seconds;
  dict["time_to_first_token"] = summary.time_to_first_token_s;
  dict["prefill_tps"] = summary.prefill_tps;
  dict["decode_tps"] = summary.decode_tps;
  dict["ids"] = summary.tokens;
  return dict;
}

std::vector<std::pair<std::string, std::string>> tool_calls(const Running<ChatReply>& running) {
  std::vector<std::pair<std::string, std::string>> calls;
  for (const ToolCall& call : running.source().tool_calls()) {
    calls.emplace_back(call.name, call.arguments);
  }
  return calls;
}

template <typename Source>
nb::class_<Running<Source>> bind(nb::module_& module, const char* name) {
  return nb::class_<Running<Source>>(module, name)
      .def("next", &Running<Source>::next)
      .def("cancel", &Running<Source>::cancel)
      .def("summary", [](Running<Source>& running) { return to_dict(running.summary()); });
}

}  // namespace

void bind_running(nb::module_& module) {
  bind<Generation>(module, "Generation");
  bind<ChatReply>(module, "ChatReply").def("tool_calls", &tool_calls);
}

}  // namespace edgerunner::python
