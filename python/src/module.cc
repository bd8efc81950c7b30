#include <nanobind/nanobind.h>

#include <exception>
#include <string_view>

#include "bindings.h"
#include "edgerunner/error.h"

namespace nb = nanobind;

namespace edgerunner::python {
namespace {

const char* name(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_file:
      return "invalid_file";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::out_of_memory:
      return "out_of_memory";
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::context_full:
      return "context_full";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::device:
      return "device";
    case ErrorCode::io:
      return "io";
  }
  return "unknown";
}

// edgerunner::Error becomes the package's Error.
void translate(const std::exception_ptr& exception, void* /*payload*/) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    const std::string_view message = error.what();  // a path in it may be no UTF-8
    const nb::object text = nb::steal(PyUnicode_DecodeUTF8(
        message.data(), static_cast<Py_ssize_t>(message.size()), "backslashreplace"));
    const nb::object type = nb::module_::import_("edgerunner._error").attr("Error");
    const nb::object instance = type(text, name(error.code()));
    PyErr_SetObject(type.ptr(), instance.ptr());
  }
}

}  // namespace
}  // namespace edgerunner::python

NB_MODULE(_core, module) {
  // An interpreter that ends with a model alive is no leak to tell users of.
  nb::set_leak_warnings(false);
  nb::register_exception_translator(edgerunner::python::translate);
  edgerunner::python::bind_generate_options(module);
  edgerunner::python::bind_running(module);
  edgerunner::python::bind_model(module);
}
