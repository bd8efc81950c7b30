#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "edgerunner/error.h"
#include "edgerunner/generation.h"

namespace nb = nanobind;

namespace edgerunner::python {
namespace {

// A member of GenerateOptions::sampling as one of the options themselves.
template <auto Member>
void bind_sampling(nb::class_<GenerateOptions>& options, const char* name) {
  using Value = std::remove_cvref_t<decltype(SamplingOptions{}.*Member)>;
  options.def_prop_rw(
      name, [](const GenerateOptions& self) { return self.sampling.*Member; },
      [](GenerateOptions& self, Value value) { self.sampling.*Member = std::move(value); });
}

// Ids of adapters with their scales.
using Adapters = std::vector<std::pair<std::uint32_t, float>>;

void set_adapters(GenerateOptions& self, const Adapters& wanted) {
  std::vector<AdapterScale>& adapters = self.adapters.emplace();
  for (const auto& [id, scale] : wanted) adapters.push_back({.id = id, .scale = scale});
}

void set_guessing(GenerateOptions& self, const std::string& name) {
  if (name != "off" && name != "lookup") {
    throw Error(ErrorCode::invalid_argument,
                "speculate is '" + name + "'; it must be one of off, lookup");
  }
  self.guessing = name == "off" ? Guessing::off : Guessing::lookup;
}

}  // namespace

void bind_generate_options(nb::module_& module) {
  nb::class_<GenerateOptions> options(module, "GenerateOptions");
  options.def(nb::init<>())
      .def_rw("max_tokens", &GenerateOptions::max_tokens)
      .def_rw("stop", &GenerateOptions::stop)
      .def_rw("stop_tokens", &GenerateOptions::stop_tokens)
      .def_rw("ignore_eos", &GenerateOptions::ignore_eos)
      .def_rw("json_schema", &GenerateOptions::json_schema)
      .def_rw("grammar", &GenerateOptions::grammar)
      .def_rw("circular_context", &GenerateOptions::circular_context)
      .def_rw("keep_tokens", &GenerateOptions::keep_tokens)
      .def_rw("draft_tokens", &GenerateOptions::draft_tokens)
      .def_prop_rw("adapters", nullptr, &set_adapters)
      .def_prop_rw("speculate", nullptr, &set_guessing);
  bind_sampling<&SamplingOptions::temperature>(options, "temperature");
  bind_sampling<&SamplingOptions::top_k>(options, "top_k");
  bind_sampling<&SamplingOptions::top_p>(options, "top_p");
  bind_sampling<&SamplingOptions::min_p>(options, "min_p");
  bind_sampling<&SamplingOptions::repeat_penalty>(options, "repeat_penalty");
  bind_sampling<&SamplingOptions::frequency_penalty>(options, "frequency_penalty");
  bind_sampling<&SamplingOptions::presence_penalty>(options, "presence_penalty");
  bind_sampling<&SamplingOptions::penalty_last_n>(options, "penalty_last_n");
  bind_sampling<&SamplingOptions::logit_bias>(options, "logit_bias");
  bind_sampling<&SamplingOptions::seed>(options, "seed");
}

}  // namespace edgerunner::python
