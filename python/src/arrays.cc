#include "arrays.h"

#include <memory>
#include <utility>

namespace nb = nanobind;

namespace edgerunner::python {

Array to_array(std::vector<float> values) {
  auto owned = std::make_unique<std::vector<float>>(std::move(values));
  float* data = owned->data();
  const std::size_t size = owned->size();
  nb::capsule owner(owned.release(),
                    [](void* vector) noexcept { delete static_cast<std::vector<float>*>(vector); });
  return Array(data, {size}, owner);
}

}  // namespace edgerunner::python
