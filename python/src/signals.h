#pragma once

#include <nanobind/nanobind.h>

#include <chrono>

namespace edgerunner::python {

// How long a call waits before it looks for Ctrl-C: short for a person, long for a processor.
constexpr std::chrono::milliseconds kSignalInterval{50};

// Waits, without the GIL, until `ready(timeout)` is true, and calls Python's signal handlers in
// between. Where one raises, as for Ctrl-C, `abandon()` is called and the exception thrown on. Call
// it with the GIL held.
template <typename Ready, typename Abandon>
void wait_with_signals(const Ready& ready, const Abandon& abandon) {
  while (true) {
    {
      const nanobind::gil_scoped_release no_gil;
      if (ready(kSignalInterval)) return;
    }
    if (PyErr_CheckSignals() != 0) {
      abandon();
      throw nanobind::python_error();
    }
  }
}

}  // namespace edgerunner::python
