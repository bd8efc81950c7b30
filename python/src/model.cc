#include "model.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <future>
#include <stop_token>
#include <utility>

#include "bindings.h"
#include "edgerunner/error.h"
#include "signals.h"

namespace nb = nanobind;

namespace edgerunner::python {
namespace {

[[noreturn]] void refuse(const std::string& option, const std::string& value, const char* choices) {
  throw Error(ErrorCode::invalid_argument,
              option + " is '" + value + "'; it must be one of " + choices);
}

BackendKind to_backend(const std::string& name) {
  if (name == "cpu") return BackendKind::cpu;
  if (name == "cuda") return BackendKind::cuda;
  if (name == "reference") return BackendKind::reference;
  refuse("backend", name, "cpu, cuda, reference");
}

Precision to_precision(const std::string& name) {
  if (name == "fast") return Precision::fast;
  if (name == "exact") return Precision::exact;
  refuse("precision", name, "fast, exact");
}

std::optional<KvPrecision> to_kv(const std::optional<std::string>& wanted) {
  if (!wanted) return std::nullopt;
  for (const KvPrecision kv : {KvPrecision::f16, KvPrecision::f32, KvPrecision::q8}) {
    if (*wanted == name(kv)) return kv;
  }
  refuse("kv", *wanted, "f16, f32, q8");
}

Pooling to_pooling(const std::string& name) {
  if (name == "mean") return Pooling::mean;
  if (name == "last") return Pooling::last;
  refuse("pooling", name, "mean, last");
}

SpeculationOptions to_speculation(const std::string& name) {
  SpeculationOptions options;
  options.lookup = name == "lookup";
  options.on_request = name == "on_request";
  if (!options.enabled() && name != "off") refuse("speculate", name, "off, lookup, on_request");
  return options;
}

// Loading is interrupted between its steps.
std::function<void(double)> reporting_to(nb::object progress) {
  return [progress = std::move(progress)](double fraction) {
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!progress.is_none()) progress(fraction);
  };
}

Model load(const std::string& path, ModelOptions options, nb::object progress) {
  options.progress = reporting_to(std::move(progress));
  const nb::gil_scoped_release no_gil;
  Model model = Model::load(path, options);
  return model;
}

// Computes on a thread of its own, so that this one can look for signals.
template <typename Input>
std::vector<float> embed_interruptibly(Model& model, const Input& input, Pooling pooling) {
  std::stop_source stop;
  auto result = std::async(std::launch::async, [&] {
    return edgerunner::embed(model, input, pooling, stop.get_token());
  });
  wait_with_signals(
      [&](auto timeout) { return result.wait_for(timeout) == std::future_status::ready; },
      [&] {
        stop.request_stop();
        const nb::gil_scoped_release no_gil;
        result.wait();
      });
  return result.get();
}

}  // namespace

const Chat& PythonModel::Loaded::chat() {
  std::call_once(chat_made_, [this] { chat_.emplace(model); });
  return *chat_;
}

PythonModel::PythonModel(const std::string& path, ModelOptions options, nb::object progress)
    : loaded_(std::make_shared<Loaded>(load(path, std::move(options), std::move(progress)))) {}

std::shared_ptr<PythonModel::Loaded> PythonModel::loaded() const {
  if (!loaded_) throw nb::value_error("the model has been closed");
  return loaded_;
}

nb::dict PythonModel::info() const {
  const auto loaded = this->loaded();
  const ModelInfo& info = loaded->model.info();
  nb::dict dict;
  dict["architecture"] = info.architecture;
  dict["name"] = info.name;
  dict["chat_template"] = info.chat_template;
  dict["parameters"] = info.parameters;
  dict["file_bytes"] = info.file_bytes;
  dict["weights_bytes"] = info.weights_bytes;
  dict["cache_bytes"] = info.cache_bytes;
  dict["scratch_bytes"] = info.scratch_bytes;
  dict["vocab_size"] = info.vocab_size;
  dict["embedding_size"] = embedding_size(loaded->model);
  dict["trained_context"] = info.trained_context;
  dict["context"] = info.context;
  dict["backend"] = info.backend;
  dict["isa"] = info.isa;
  dict["threads"] = info.threads;
  dict["remarks"] = info.remarks;
  return dict;
}

std::vector<TokenId> PythonModel::tokenize(std::string_view text, bool add_special,
                                           bool parse_special) const {
  const auto loaded = this->loaded();
  const nb::gil_scoped_release no_gil;
  return loaded->model.tokenizer().encode(
      text, {.add_special = add_special, .parse_special = parse_special});
}

nb::bytes PythonModel::detokenize(const std::vector<TokenId>& ids, bool special) const {
  const std::string text = loaded()->model.tokenizer().decode(ids, special);
  return nb::bytes(text.data(), text.size());
}

std::unique_ptr<Running<Generation>> PythonModel::generate(std::string_view prompt,
                                                           const GenerateOptions& options) const {
  const auto loaded = this->loaded();
  const nb::gil_scoped_release no_gil;
  return std::make_unique<Running<Generation>>(loaded->model.generate(prompt, options));
}

std::unique_ptr<Running<Generation>> PythonModel::generate_ids(
    const std::vector<TokenId>& prompt, const GenerateOptions& options) const {
  const auto loaded = this->loaded();
  const nb::gil_scoped_release no_gil;
  return std::make_unique<Running<Generation>>(loaded->model.generate(prompt, options));
}

std::unique_ptr<Running<ChatReply>> PythonModel::chat(const std::string& messages,
                                                      const std::string& tools,
                                                      const std::string& variables,
                                                      const GenerateOptions& options) const {
  const auto loaded = this->loaded();
  const nb::gil_scoped_release no_gil;
  return std::make_unique<Running<ChatReply>>(
      loaded->chat().reply(messages, options, {.tools = tools, .variables = variables}));
}

std::string PythonModel::render_chat(const std::string& messages, const std::string& tools,
                                     const std::string& variables) const {
  const auto loaded = this->loaded();
  const nb::gil_scoped_release no_gil;
  return loaded->chat().render(messages, {.tools = tools, .variables = variables});
}

Array PythonModel::logits(const std::vector<TokenId>& ids) const {
  const auto loaded = this->loaded();
  std::vector<float> values;
  {
    const nb::gil_scoped_release no_gil;
    Session session = loaded->model.session();
    const std::span<const float> logits = session.logits(ids);
    values.assign(logits.begin(), logits.end());
  }
  return to_array(std::move(values));
}

Array PythonModel::embed(std::string_view text, const std::string& pooling) const {
  const auto loaded = this->loaded();
  return to_array(embed_interruptibly(loaded->model, text, to_pooling(pooling)));
}

Array PythonModel::embed_ids(const std::vector<TokenId>& ids, const std::string& pooling) const {
  const auto loaded = this->loaded();
  return to_array(embed_interruptibly(loaded->model, ids, to_pooling(pooling)));
}

void PythonModel::cancel_all() const { loaded()->model.cancel_all(); }

void PythonModel::trim_memory() const {
  const auto loaded = this->loaded();
  const nb::gil_scoped_release no_gil;
  loaded->model.trim_memory();
}

void PythonModel::close() {
  std::shared_ptr<Loaded> closed = std::exchange(loaded_, nullptr);
  if (!closed) return;
  const nb::gil_scoped_release no_gil;
  closed->model.cancel_all();
  closed.reset();
}

void bind_model(nb::module_& module) {
  nb::class_<PythonModel>(module, "Model")
      .def(
          "__init__",
          [](PythonModel* self, const std::string& path, const std::string& backend,
             const std::string& precision, const std::optional<std::string>& kv, int threads,
             std::uint32_t context, std::uint32_t prefill_chunk, std::uint32_t max_sequences,
             std::uint32_t cache_tokens, std::uint64_t memory_limit,
             const std::vector<std::pair<std::string, float>>& adapters,
             const std::string& speculate, const std::string& draft, std::uint32_t draft_tokens,
             double draft_confidence, nb::object progress) {
            ModelOptions options;
            options.backend = to_backend(backend);
            options.precision = to_precision(precision);
            options.kv = to_kv(kv);
            options.threads = threads;
            options.context = context;
            options.prefill_chunk = prefill_chunk;
            options.max_sequences = max_sequences;
            options.cache_tokens = cache_tokens;
            options.memory_limit = memory_limit;
            for (const auto& [file, scale] : adapters) {
              options.adapters.push_back({.path = file, .scale = scale});
            }
            options.speculation = to_speculation(speculate);
            options.speculation.draft_model = draft;
            options.speculation.draft_tokens = draft_tokens;
            options.speculation.draft_confidence = draft_confidence;
            new (self) PythonModel(path, std::move(options), std::move(progress));
          },
          nb::arg("path"), nb::kw_only(), nb::arg("backend"), nb::arg("precision"),
          nb::arg("kv").none(), nb::arg("threads"), nb::arg("context"), nb::arg("prefill_chunk"),
          nb::arg("max_sequences"), nb::arg("cache_tokens"), nb::arg("memory_limit"),
          nb::arg("adapters"), nb::arg("speculate"), nb::arg("draft"), nb::arg("draft_tokens"),
          nb::arg("draft_confidence"), nb::arg("progress").none())
      .def("info", &PythonModel::info)
      .def("tokenize", &PythonModel::tokenize)
      .def(
          "tokenize",
          [](const PythonModel& self, const nb::bytes& text, bool add_special, bool parse_special) {
            return self.tokenize({text.c_str(), text.size()}, add_special, parse_special);
          })
      .def("detokenize", &PythonModel::detokenize)
      .def("generate", &PythonModel::generate)
      .def("generate", &PythonModel::generate_ids)
      .def("chat", &PythonModel::chat)
      .def("render_chat", &PythonModel::render_chat)
      .def("logits", &PythonModel::logits)
      .def("embed", &PythonModel::embed)
      .def("embed", &PythonModel::embed_ids)
      .def("cancel_all", &PythonModel::cancel_all)
      .def("trim_memory", &PythonModel::trim_memory)
      .def("close", &PythonModel::close);
}

}  // namespace edgerunner::python
