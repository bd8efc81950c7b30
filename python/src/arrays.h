#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <vector>

namespace edgerunner::python {

using Array = nanobind::ndarray<nanobind::numpy, float, nanobind::ndim<1>>;

// A numpy array that owns the values.
Array to_array(std::vector<float> values);

}  // namespace edgerunner::python
