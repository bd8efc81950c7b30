#pragma once

#include <nanobind/nanobind.h>

namespace edgerunner::python {

// Each adds its classes to the module.
void bind_generate_options(nanobind::module_& module);
void bind_running(nanobind::module_& module);
void bind_model(nanobind::module_& module);

}  // namespace edgerunner::python
